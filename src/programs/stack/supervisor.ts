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
  /** A descriptor of ours that it gets as its number 3. */
  fd?: number;
  /** Whether the part does its work by now; its last lines may tell. */
  ready: (lastLines: readonly string[]) => Promise<boolean>;
  /** What the stack prints of one of its lines; nothing hides the line. By default it prints all lines as they are. */
  display?: (line: string) => string | undefined;
  /** How long it may take to end by itself when told to. */
  graceMs?: number;
}

const READY_TIMEOUT_MS = 90_000;
const READY_POLL_MS = 50;
const READY_PATIENCE_MS = 2_000;
const FIRST_PAUSE_MS = 250;
const MAX_DEATHS = 5;
const DEATHS_WINDOW_MS = 60_000;
const LAST_LINES = 15;
const STOP_BUDGET_MS = 4_500;

interface Running {
  part: Component;
  child: ChildProcess;
  exited: Promise<void>;
  lastLines: string[];
  deathsMs: number[];
  /** Settled when the part is ready for the first time. */
  firstReady: PromiseWithResolvers<void>;
}

/** Keeps the parts of the stack running, and ends them in the reverse of the order in which they were started. */
export class Supervisor {
  readonly #running: Running[] = [];
  readonly #fatal = Promise.withResolvers<never>();
  readonly #onChange: () => void;
  readonly #stop = new AbortController();

  constructor(onChange: () => void = () => {}) {
    this.#onChange = onChange;
    this.#fatal.promise.catch(() => {});
  }

  /** Rejects when a part cannot be kept alive. */
  get fatal(): Promise<never> {
    return this.#fatal.promise;
  }

  /** Fires when the parts are told to stop: for whatever else is under way. */
  get stopSignal(): AbortSignal {
    return this.#stop.signal;
  }

  get #stopping(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Process ids by part. */
  get pids(): Record<string, number> {
    return Object.fromEntries(
      this.#running.flatMap(({ part, child }) => (child.pid === undefined ? [] : [[part.name, child.pid]])),
    );
  }

  /** Starts a part and waits until it is ready. */
  async start(part: Component): Promise<void> {
    if (this.#stopping) return;
    const running: Running = { part, ...this.#spawn(part), deathsMs: [], firstReady: Promise.withResolvers() };
    this.#running.push(running);
    this.#watch(running);
    void this.#untilReady(running);
    await Promise.race([running.firstReady.promise, this.fatal]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    const deadlineMs = Date.now() + STOP_BUDGET_MS;
    for (const { part, child, exited } of this.#running.toReversed()) {
      if (child.pid === undefined) continue;
      signalGroup(child.pid, "SIGTERM");
      const timeoutMs = Math.max(0, Math.min(part.graceMs ?? 1_000, deadlineMs - Date.now()));
      await Promise.race([exited, sleep(timeoutMs, undefined, { ref: false })]);
      // Also after a clean end: the part may have left children of its own behind.
      signalGroup(child.pid, "SIGKILL");
      await exited;
    }
  }

  #spawn(part: Component): Pick<Running, "child" | "exited" | "lastLines"> {
    // A group of its own: Ctrl-C in the terminal reaches the supervisor alone, which then ends the parts in order.
    const child = spawn(part.command, part.args, {
      detached: true,
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe", ...(part.fd === undefined ? [] : [part.fd])],
      env: { ...withoutSecrets(process.env), ...part.env },
    });
    const lastLines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        lastLines.push(line);
        if (lastLines.length > LAST_LINES) lastLines.shift();
        if (this.#stopping) return;
        const shown = part.display === undefined ? line : part.display(line);
        if (shown !== undefined) printFrom(part.name, shown);
      });
    }
    const exited = new Promise<void>((resolve) => {
      child.once("error", () => resolve());
      child.once("exit", () => resolve());
    });
    return { child, exited, lastLines };
  }

  #watch(running: Running): void {
    const { part, child } = running;
    this.#onChange();
    child.once("error", (error) =>
      this.#fatal.reject(new UserError(`${part.name} cannot be started: ${error.message}`)),
    );
    child.once("exit", (code, signal) => {
      if (this.#stopping) return;
      // Whatever it had started goes with it; its successor needs the ports.
      if (child.pid !== undefined) signalGroup(child.pid, "SIGKILL");
      void this.#revive(running, signal ?? `exit code ${code}`);
    });
  }

  async #revive(running: Running, how: string): Promise<void> {
    const { part, lastLines } = running;
    const nowMs = Date.now();
    running.deathsMs = [...running.deathsMs.filter((deathMs) => deathMs > nowMs - DEATHS_WINDOW_MS), nowMs];
    const deaths = running.deathsMs.length;
    print(red(`${part.name} ended unexpectedly (${how}).`));
    for (const line of lastLines) printFrom(part.name, line);
    if (deaths >= MAX_DEATHS) {
      this.#fatal.reject(new UserError(`${part.name} ended ${deaths} times within a minute; giving up.`));
      return;
    }
    const pauseMs = FIRST_PAUSE_MS * 2 ** (deaths - 1);
    print(`Starting ${part.name} again in ${pauseMs / 1000} s.`);
    await sleep(pauseMs);
    if (this.#stopping) return;
    Object.assign(running, this.#spawn(part));
    this.#watch(running);
    if (await this.#untilReady(running)) print(`${part.name} is back.`);
  }

  /** Polls until the part is ready; false where it ended, or the stack did, before that. */
  async #untilReady(running: Running): Promise<boolean> {
    const { part, child, lastLines } = running;
    const deadlineMs = Date.now() + READY_TIMEOUT_MS;
    while (!this.#stopping && running.child === child) {
      // A part that accepts and never answers must not hold up the deadline.
      if (
        await Promise.race([part.ready(lastLines).catch(() => false), sleep(READY_PATIENCE_MS, false, { ref: false })])
      ) {
        running.firstReady.resolve();
        return true;
      }
      if (Date.now() > deadlineMs) {
        this.#fatal.reject(new UserError(`${part.name} was not ready within ${READY_TIMEOUT_MS / 1000} s.`));
        return false;
      }
      await sleep(READY_POLL_MS);
    }
    return false;
  }
}

/** Of the secrets that the whole is started with a part is told its own, and no others. */
const withoutSecrets = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !isSecret(name)));
