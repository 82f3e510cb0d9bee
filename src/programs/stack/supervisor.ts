import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { print, printFrom, red, UserError } from "../shared/cli.ts";
import { isSecret } from "../shared/settings.ts";
import { ROOT, signalGroup } from "../shared/system.ts";

/** One process of the stack. */
export interface Component {
  name: string;
  command: string;
  args: string[];
  env?: Record<string, string>;
  /** A file descriptor of this process that the component gets as its descriptor 3. */
  fd?: number;
  /** Returns whether the component is ready. Gets the last lines of its output. */
  ready: (lastLines: readonly string[]) => Promise<boolean>;
  /** Returns what the stack prints for a line of the component, or undefined to hide the line. By default the line is unchanged. */
  display?: (line: string) => string | undefined;
  /** How long the component may take to exit after SIGTERM. */
  graceMs?: number;
}

const READY_TIMEOUT_MS = 90_000;
const READY_POLL_MS = 50;
const READY_CHECK_TIMEOUT_MS = 2_000;
const FIRST_RESTART_MS = 250;
const MAX_EXITS = 5;
const EXITS_WINDOW_MS = 60_000;
const LAST_LINES = 15;
const STOP_BUDGET_MS = 4_500;

interface Running {
  component: Component;
  child: ChildProcess;
  exited: Promise<void>;
  lastLines: string[];
  /** When the component exited unexpectedly, within the last minute. */
  exitsMs: number[];
  /** Resolves when the component is ready for the first time. */
  firstReady: PromiseWithResolvers<void>;
}

/** Keeps the components of the stack running, and stops them in the reverse order of their start. */
export class Supervisor {
  readonly #running: Running[] = [];
  readonly #fatal = Promise.withResolvers<never>();
  readonly #onChange: () => void;
  readonly #stop = new AbortController();

  constructor(onChange: () => void = () => {}) {
    this.#onChange = onChange;
    this.#fatal.promise.catch(() => {});
  }

  /** Rejects when a component cannot be kept running. */
  get fatal(): Promise<never> {
    return this.#fatal.promise;
  }

  /** Fires when the stack stops, for other work that is in progress. */
  get stopSignal(): AbortSignal {
    return this.#stop.signal;
  }

  get #isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  /** The process ids by component name. */
  get pids(): Record<string, number> {
    return Object.fromEntries(
      this.#running.flatMap(({ component, child }) => (child.pid === undefined ? [] : [[component.name, child.pid]])),
    );
  }

  /** Starts a component and waits until it is ready. */
  async start(component: Component): Promise<void> {
    if (this.#isStopping) return;
    const spawned = this.#spawn(component);
    const running: Running = { component, ...spawned, exitsMs: [], firstReady: Promise.withResolvers() };
    this.#running.push(running);
    this.#watch(running);
    void this.#untilReady(running);
    await Promise.race([running.firstReady.promise, this.fatal]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    const deadlineMs = Date.now() + STOP_BUDGET_MS;
    for (const { component, child, exited } of this.#running.toReversed()) {
      if (child.pid === undefined) continue;
      signalGroup(child.pid, "SIGTERM");
      const timeoutMs = Math.max(0, Math.min(component.graceMs ?? 1_000, deadlineMs - Date.now()));
      await Promise.race([exited, sleep(timeoutMs, undefined, { ref: false })]);
      // Even after a clean exit: the component may have left child processes behind.
      signalGroup(child.pid, "SIGKILL");
      await exited;
    }
  }

  #spawn(component: Component): Pick<Running, "child" | "exited" | "lastLines"> {
    // `detached` creates a process group. Ctrl-C in the terminal then reaches only the supervisor, which stops the components in order.
    const child = spawn(component.command, component.args, {
      detached: true,
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe", ...(component.fd === undefined ? [] : [component.fd])],
      env: { ...withoutSecrets(process.env), ...component.env },
    });
    const lastLines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        lastLines.push(line);
        if (lastLines.length > LAST_LINES) lastLines.shift();
        if (this.#isStopping) return;
        const shown = component.display === undefined ? line : component.display(line);
        if (shown !== undefined) printFrom(component.name, shown);
      });
    }
    const exited = new Promise<void>((resolve) => {
      child.once("error", () => resolve());
      child.once("exit", () => resolve());
    });
    return { child, exited, lastLines };
  }

  #watch(running: Running): void {
    const { component, child } = running;
    this.#onChange();
    child.once("error", (error) =>
      this.#fatal.reject(new UserError(`${component.name} cannot be started: ${error.message}`)),
    );
    child.once("exit", (code, signal) => {
      if (this.#isStopping) return;
      // Kill its child processes: the restarted component needs their ports.
      if (child.pid !== undefined) signalGroup(child.pid, "SIGKILL");
      void this.#restart(running, signal ?? `exit code ${code}`);
    });
  }

  async #restart(running: Running, cause: string): Promise<void> {
    const { component, lastLines } = running;
    const nowMs = Date.now();
    running.exitsMs = [...running.exitsMs.filter((exitMs) => exitMs > nowMs - EXITS_WINDOW_MS), nowMs];
    const exits = running.exitsMs.length;
    print(red(`${component.name} ended unexpectedly (${cause}). Its last lines:`));
    for (const line of lastLines) printFrom(component.name, line);
    if (exits >= MAX_EXITS) {
      this.#fatal.reject(new UserError(`${component.name} ended ${exits} times within a minute. Giving up.`));
      return;
    }
    const pauseMs = FIRST_RESTART_MS * 2 ** (exits - 1);
    print(`Restarting ${component.name} in ${pauseMs / 1000} s.`);
    await sleep(pauseMs);
    if (this.#isStopping) return;
    Object.assign(running, this.#spawn(component));
    this.#watch(running);
    if (await this.#untilReady(running)) print(`${component.name} is back.`);
  }

  /** Polls until the component is ready. Returns false if the component exits, or the stack stops, before that. */
  async #untilReady(running: Running): Promise<boolean> {
    const { component, child, lastLines } = running;
    const deadlineMs = Date.now() + READY_TIMEOUT_MS;
    while (!this.#isStopping && running.child === child) {
      // Limit each check: a component that accepts connections but never responds must not delay the deadline.
      const timeout = sleep(READY_CHECK_TIMEOUT_MS, false, { ref: false });
      if (await Promise.race([component.ready(lastLines).catch(() => false), timeout])) {
        running.firstReady.resolve();
        return true;
      }
      if (Date.now() > deadlineMs) {
        this.#fatal.reject(new UserError(`${component.name} was not ready within ${READY_TIMEOUT_MS / 1000} s.`));
        return false;
      }
      await sleep(READY_POLL_MS);
    }
    return false;
  }
}

/** A component gets only its own secrets, not those of the stack's environment. */
const withoutSecrets = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !isSecret(name)));
