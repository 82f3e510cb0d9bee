import * as z from "zod";
import type { EventLog } from "../events/event-log.ts";
import { sleep } from "../lib/deadline.ts";
import { describeError, log } from "../lib/log.ts";
import type { Health } from "../monitoring/health.ts";

const State = z.enum(["up", "down"]);
type State = z.output<typeof State>;

/** Stored: field names must not change. */
const Watched = z.object({
  /** The last state of each component. A component that is missing was up. */
  states: z.record(z.string(), State),
  /** Changes that are not in the event log yet, oldest first. */
  pending: z.array(z.object({ component: z.string(), state: State, atMs: z.number() })),
});
type Watched = z.output<typeof Watched>;

export interface ComponentWatchOptions {
  storage: Pick<DurableObjectStorage, "get" | "put">;
  health: Health;
  eventLog: Pick<EventLog, "append">;
  /** Time until a changed state is checked again. Default: one second. */
  confirmAfterMs?: number;
  now?: () => number;
}

const KEY = "components";
/** More changes than this during one outage of the accounts database are not kept. */
const MAX_PENDING = 200;

/**
 * Writes an event when a component of `/readyz` goes down or comes up. Runs in one object, so each change is one event. The object stores
 * the change first, and the log accepts it once, by its source: a change during an outage of the accounts database is written afterwards.
 */
export class ComponentWatch {
  readonly #options: ComponentWatchOptions;
  #watched: Watched | undefined;

  constructor(options: ComponentWatchOptions) {
    this.#options = options;
  }

  /** Checks all components once. Never throws. */
  async run(): Promise<void> {
    try {
      const watched = await this.#load();
      const changed = await this.#changes(watched.states);
      if (changed.length > 0) await this.#record(watched, changed);
      if (watched.pending.length > 0) await this.#upload(watched);
    } catch (error) {
      // The next run continues: what is pending stays stored.
      log.warn("component events not written", { error: describeError(error) });
    }
  }

  async #load(): Promise<Watched> {
    this.#watched ??= Watched.safeParse(await this.#options.storage.get(KEY)).data ?? { states: {}, pending: [] };
    return this.#watched;
  }

  /** Returns the components with a new state. A single check may fail by chance, so a second one must agree. */
  async #changes(states: Watched["states"]): Promise<[string, State][]> {
    const { health, confirmAfterMs = 1_000 } = this.#options;
    const changes = async () =>
      Object.entries(await health.check()).filter(([name, state]) => state !== (states[name] ?? "up"));
    const first = await changes();
    if (first.length === 0) return [];
    await sleep(confirmAfterMs);
    const names = new Set(first.map(([name]) => name));
    return (await changes()).filter(([name]) => names.has(name));
  }

  async #record(watched: Watched, changed: readonly [string, State][]): Promise<void> {
    const atMs = (this.#options.now ?? Date.now)();
    for (const [component, state] of changed) {
      watched.states[component] = state;
      watched.pending.push({ component, state, atMs });
    }
    watched.pending.splice(0, Math.max(0, watched.pending.length - MAX_PENDING));
    await this.#save(watched);
  }

  async #upload(watched: Watched): Promise<void> {
    await this.#options.eventLog.append(
      watched.pending.map(({ component, state, atMs }) => ({
        atMs,
        type: state === "down" ? "component.down" : "component.up",
        severity: state === "down" ? "critical" : "info",
        actor: "service",
        data: { component },
        source: `component/${component}/${atMs}`,
      })),
    );
    watched.pending = [];
    await this.#save(watched);
  }

  /** If the disk is full, the state stays in memory: the event log may be on another one. */
  async #save(watched: Watched): Promise<void> {
    await this.#options.storage.put(KEY, watched).catch((error: unknown) => {
      log.warn("component states not stored", { error: describeError(error) });
    });
  }
}
