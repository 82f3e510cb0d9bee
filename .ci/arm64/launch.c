// Runs `clickhouse local` from libchdb.so (x86-64), under an emulator. Usage: CHDB_SO=path launch local [arguments]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static long raw(long n, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

// libchdb makes some system calls through its own routine. box64 supports fewer of them by number than by name.
static long by_name(long n, long a, long b, long c, long d, long e, long f) {
  long result;
  switch (n) {
    case SYS_timerfd_create: result = timerfd_create(a, b); break;
    case SYS_timerfd_settime: result = timerfd_settime(a, b, (void *)c, (void *)d); break;
    case SYS_clock_gettime: result = clock_gettime(a, (void *)b); break;
    case SYS_epoll_create: result = epoll_create(a); break;
    case SYS_epoll_create1: result = epoll_create1(a); break;
    case SYS_epoll_ctl: result = epoll_ctl(a, b, c, (void *)d); break;
    case SYS_epoll_wait: result = epoll_wait(a, (void *)b, c, d); break;
    case SYS_epoll_pwait: result = epoll_pwait(a, (void *)b, c, d, (void *)e); break;
    case SYS_eventfd: result = eventfd(a, 0); break;
    case SYS_eventfd2: result = eventfd(a, b); break;
    case SYS_getcpu: {
      int cpu = sched_getcpu();
      if (a) *(unsigned *)a = cpu < 0 ? 0 : cpu;
      if (b) *(unsigned *)b = 0;
      return 0;
    }
    default: return raw(n, a, b, c, d, e, f);
  }
  return result == -1 ? -errno : result;
}

struct segment {
  char *low, *high;
};

static int find_text(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  if (!strstr(info->dlpi_name, "libchdb")) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
    struct segment *text = found;
    text->low = (char *)info->dlpi_addr + header->p_vaddr;
    text->high = text->low + header->p_memsz;
    return 1;
  }
  return 0;
}

// Finds the routine of libchdb by its first instructions, and patches it to jump to by_name().
static int redirect_system_calls(void) {
  static const unsigned char routine[] = {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6,
                                          0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xc8};
  const long page = 4096, tail = 1 << 20;
  struct segment text = {0};
  dl_iterate_phdr(find_text, &text);
  if (!text.low) return 0;
  // The routine is linked last. Searching there first avoids paging in half a gigabyte.
  char *at = text.high - text.low > tail ? memmem(text.high - tail, tail, routine, sizeof routine) : NULL;
  if (!at) at = memmem(text.low, text.high - text.low, routine, sizeof routine);
  if (!at) return 0;
  char *start = (char *)((long)at & -page);
  unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};  // movabs rax, by_name; jmp rax
  void *target = (void *)by_name;
  memcpy(jump + 2, &target, sizeof target);
  if (mprotect(start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC)) return 0;
  memcpy(at, jump, sizeof jump);
  return mprotect(start, 2 * page, PROT_READ | PROT_EXEC) == 0;
}

static void end(int signal) {
  (void)signal;
  _exit(0);
}

int main(int argc, char **argv) {
  void *library = dlopen(getenv("CHDB_SO"), RTLD_NOW | RTLD_GLOBAL);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  if (!redirect_system_calls()) return fprintf(stderr, "this version of libchdb is not supported\n"), 1;
  void (*handle_signals)(int) = dlsym(library, "chdb_set_signal_handlers_enabled");
  void *(*run)(int, char **) = dlsym(library, "chdb_query_cmdline");
  const char *(*error_of)(void *) = dlsym(library, "chdb_result_error");
  handle_signals(0);
  signal(SIGTERM, end);
  if (argc > 1 && !strcmp(argv[1], "local")) argv[1] = argv[0], argv++, argc--;
  void *result = run(argc, argv);  // blocks until the server ends
  const char *error = result ? error_of(result) : "no result";
  if (error && *error) fprintf(stderr, "%s\n", error);
  _exit(error && *error);
}
