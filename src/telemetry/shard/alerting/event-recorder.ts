import type { ShardEvent } from "../../../alerts/shard-events.ts";
import type { Transition } from "../../../rules/evaluator.ts";
import type { AgentEntry } from "./agent-entry.ts";
import { alertChange, type Change, memberChange } from "./changes.ts";
import type { Watch } from "./watch-set.ts";

export interface EventRecorderOptions {
  /** Called with the agent of each event. */
  onEvent(entry: AgentEntry): void;
  newId(): string;
}

/** Collects the events of a transaction, in their order. */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  #events: ShardEvent[] = [];

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#events.length;
  }

  /** Returns the events and forgets them. */
  takeAll(): ShardEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  presence(entry: AgentEntry, isOnline: boolean, atMs: number): void {
    const { apId, receivedMs: lastSeenMs } = entry;
    this.#add(entry, { kind: "presence", isOnline, atMs, apId, lastSeenMs });
  }

  transition(entry: AgentEntry, watch: Watch, { type, atMs, value }: Transition): void {
    this.#change(entry, watch, { isFiring: type === "fired", atMs, value });
  }

  /** Ends the alert of a rule that does not watch the agent any more. */
  dropped(entry: AgentEntry, watch: Watch, atMs: number): void {
    if (watch.state?.isFiring !== true) return;
    this.#change(entry, watch, { isFiring: false, atMs, value: undefined, reason: "not_watched" });
  }

  /** Sorts the last events by time: a report after a pause may cause several, of different times. */
  sortFrom(first: number): void {
    if (this.#events.length < first + 2) return;
    const sorted = this.#events.splice(first).sort((a, b) => a.atMs - b.atMs || (ruleOf(a) < ruleOf(b) ? -1 : 1));
    for (const event of sorted) this.#events.push(event);
  }

  #change(entry: AgentEntry, watch: Watch, change: Change): void {
    const member = memberChange(entry, watch, change);
    if (member !== undefined) {
      this.#add(entry, member);
      return;
    }
    if (change.isFiring) watch.alert = { id: this.#options.newId(), firedMs: change.atMs };
    const { alert } = watch;
    if (alert === undefined) return;
    this.#add(entry, alertChange(entry, watch, alert, change));
    if (!change.isFiring) watch.alert = undefined;
  }

  #add(entry: AgentEntry, event: ShardEvent): void {
    this.#events.push(event);
    this.#options.onEvent(entry);
  }
}

const ruleOf = (event: ShardEvent): string => (event.kind === "presence" ? "" : event.rule.id);
