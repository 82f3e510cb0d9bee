import type { ShardEvent } from "../../alerts/shard-events.ts";
import type { WatchChanges } from "../../alerts/watch-feed.ts";
import { log } from "../../lib/log.ts";
import { type Observation, step, type Transition } from "../../rules/evaluator.ts";
import { onlineTimeoutMs } from "../presence.ts";
import type { AgentSample } from "../store/telemetry-store.ts";
import { AgentEntries } from "./alerting/agent-entries.ts";
import { type AgentEntry, restoreEntry, serializeEntry, type Watch } from "./alerting/agent-entry.ts";
import { Baselines } from "./alerting/baselines.ts";
import { alertChange, memberChange } from "./alerting/changes.ts";
import type { EngineStore } from "./alerting/engine-store.ts";
import { baselineNeeds, unseenAgents } from "./alerting/needs.ts";
import { appliesTo, hasMoved, type WatchedRule, watchRules } from "./alerting/watched-rule.ts";

/**
 * Evaluates the alert rules, and whether agents are online, for every report of the shard's agents.
 *
 * Methods change the state in memory. `write` then writes, in the transaction of its caller, the new events and the states of the agents
 * that they are about. Other states are written by `checkpoint`, which is much cheaper than with every report: after a restart the
 * engine gets them back by evaluating the samples since then again. An agent's evaluation depends on its samples, the rules, the agent's
 * labels and the baselines only. So the latter three change only together with a checkpoint. Ticks change states as well, so these are
 * written at once.
 */
export interface AlertEngineOptions {
  store: EngineStore;
  /** Returns the samples since the last checkpoint. */
  replay(): Iterable<AgentSample>;
  /** Returns whether the agent belongs to this shard. */
  owns(apId: string): boolean;
  now(): number;
  newId?: () => string;
}

/** Events that wait for libSQL. Beyond it, new ones are dropped. */
const MAX_OUTGOING = 100_000;
const MAX_AGENTS = 100_000;

export class AlertEngine {
  readonly #options: AlertEngineOptions;
  readonly #store: EngineStore;
  readonly #newId: () => string;
  #entries = new AgentEntries(MAX_AGENTS);
  #rules = new Map<string, WatchedRule>();
  #baselines: Baselines;
  /** Agents whose state is not written. */
  #dirty = new Set<AgentEntry>();
  /** Agents whose state must be written with the next transaction. */
  #touched = new Set<AgentEntry>();
  #events: ShardEvent[] = [];
  #dueMs = Number.POSITIVE_INFINITY;
  readonly #unknown = new Set<string>();

  constructor(options: AlertEngineOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#newId = options.newId ?? (() => crypto.randomUUID());
    this.#baselines = new Baselines(this.#store);
    this.restore();
  }

  /** When `tick` may change something. */
  get dueMs(): number {
    return this.#dueMs;
  }

  get ruleCount(): number {
    return this.#rules.size;
  }

  get hasUnknown(): boolean {
    return this.#unknown.size > 0;
  }

  /** Returns the agents that have reported and that the watch feed has not returned. */
  unknown(): string[] {
    return [...this.#unknown];
  }

  /** Whether some states are not written. */
  get isDirty(): boolean {
    return this.#dirty.size > 0;
  }

  /** Loads the state of the last checkpoint and replays the samples since then. Call `write` afterwards. */
  restore(): void {
    this.#entries = new AgentEntries(MAX_AGENTS);
    this.#dirty = new Set();
    this.#touched = new Set();
    this.#events = [];
    this.#store.recount();
    this.#baselines = new Baselines(this.#store);
    this.#rules = watchRules(this.#store.rules());
    for (const agent of this.#store.agents()) this.#entries.getOrAdd(agent.apId).info = agent;
    for (const { key, value } of this.#store.states()) restoreEntry(this.#entries.getOrAdd(key), value, this.#rules);
    for (const entry of this.#entries) this.#assign(entry);
    for (const sample of this.#options.replay()) this.#evaluate(sample);
    this.#dueMs = this.#entries.earliestDueMs();
  }

  /** Evaluates samples in the order of their arrival. */
  evaluate(samples: readonly AgentSample[]): void {
    for (const sample of samples) this.#evaluate(sample);
  }

  /** Makes the next `write` write the states of these agents. Samples that are stored in pieces cannot be replayed. */
  touch(samples: readonly AgentSample[]): void {
    for (const { apId } of samples) {
      const entry = this.#entries.get(apId);
      if (entry !== undefined) this.#touched.add(entry);
    }
  }

  /** Evaluates what depends on time: durations, and agents that do not report. */
  tick(nowMs: number): void {
    if (nowMs < this.#dueMs) return;
    for (const entry of this.#entries) if (entry.dueMs <= nowMs) this.#tick(entry, nowMs);
    this.#dueMs = this.#entries.earliestDueMs();
  }

  /** Applies changes of rules and agents. @param pendingOf returns samples of an agent that was not known before */
  apply({ rules, agents }: WatchChanges, pendingOf: (apId: string) => readonly AgentSample[]): void {
    this.#touchDirty();
    if (rules !== undefined) {
      this.#store.setRules(rules);
      this.#rules = watchRules(rules);
    }
    const found = new Set<string>();
    const changed = new Set<AgentEntry>(rules === undefined ? [] : this.#entries);
    for (const agent of agents?.found ?? []) {
      if (!this.#options.owns(agent.apId)) continue;
      found.add(agent.apId);
      const entry = this.#entries.getOrAdd(agent.apId);
      if (entry.info !== undefined && JSON.stringify(entry.info) === JSON.stringify(agent)) continue;
      this.#store.saveAgent(agent);
      // First with the old labels: they name the group that the agent leaves.
      this.#drop(
        entry,
        (watch) => !appliesTo(watch.rule, agent.labels) || hasMoved(watch.rule, entry.info?.labels, agent.labels),
      );
      const isNew = entry.info === undefined;
      entry.info = agent;
      changed.add(entry);
      this.#assign(entry);
      if (isNew) this.evaluate(pendingOf(agent.apId));
    }
    const gone = agents === undefined ? [] : (agents.names ?? [...this.#entries.names()]);
    for (const apId of gone) if (!found.has(apId)) this.#forget(apId);
    for (const entry of changed) this.#assign(entry);
    if (changed.size > 0) this.#baselines.invalidate();
    this.#unknown.clear();
    this.#dueMs = this.#entries.earliestDueMs();
  }

  /** Returns the agents whose last report is not known and is needed. */
  unseen(): string[] {
    return unseenAgents(this.#entries);
  }

  /** Records the last report of an agent before the shard existed. Undefined: there is none. */
  seed(apId: string, last: { tsMs: number; receivedMs: number } | undefined): void {
    const entry = this.#entries.get(apId);
    if (entry === undefined) return;
    entry.isSeeded = true;
    if (last === undefined || entry.tsMs > 0) return;
    Object.assign(entry, { ...last, offsetMs: last.receivedMs - last.tsMs });
    this.#touched.add(entry);
    this.#assign(entry);
    this.#dueMs = this.#entries.earliestDueMs();
  }

  baselineNeeds(): ReturnType<typeof baselineNeeds> {
    return baselineNeeds(this.#entries);
  }

  get baselines(): Baselines {
    return this.#baselines;
  }

  /** Writes new events and the states that belong to them. Call it in a transaction, and `restore` if that fails. */
  write(): void {
    for (const entry of this.#touched) {
      this.#store.saveState(entry.apId, serializeEntry(entry));
      this.#dirty.delete(entry);
    }
    this.#touched.clear();
    if (this.#events.length === 0) return;
    const room = MAX_OUTGOING - this.#store.outgoingCount;
    for (const event of this.#events.slice(0, Math.max(room, 0))) this.#store.addOutgoing(event);
    if (room < this.#events.length)
      log.error("shard events dropped", { events: this.#events.length - Math.max(room, 0) });
    this.#events = [];
  }

  /** Writes all states. Samples until now need no replay afterwards. Call it in a transaction, and `restore` if that fails. */
  checkpoint(): void {
    this.#touchDirty();
    this.write();
  }

  #touchDirty(): void {
    for (const entry of this.#dirty) this.#touched.add(entry);
  }

  #evaluate({ apId, tsMs, metrics, receivedMs = this.#options.now() }: AgentSample): void {
    const entry = this.#entries.getOrAdd(apId);
    if (receivedMs > entry.receivedMs) this.#receive(entry, receivedMs);
    if (entry.info === undefined) {
      this.#unknown.add(apId);
      return;
    }
    // A late or repeated sample, or one without values: none of them is newer than the last report of any rule.
    if (tsMs > entry.tsMs) {
      entry.tsMs = tsMs;
      entry.offsetMs = receivedMs - tsMs;
      this.#observe(entry, { atMs: tsMs, metrics, baseline: entry.baseline });
    }
    entry.schedule();
    if (entry.dueMs < this.#dueMs) this.#dueMs = entry.dueMs;
  }

  #receive(entry: AgentEntry, receivedMs: number): void {
    entry.receivedMs = receivedMs;
    this.#dirty.add(entry);
    if (entry.isOnline || this.#options.now() - receivedMs >= onlineTimeoutMs(entry.info?.interval)) return;
    entry.isOnline = true;
    this.#addEvent(entry, {
      kind: "presence",
      isOnline: true,
      atMs: receivedMs,
      apId: entry.apId,
      lastSeenMs: receivedMs,
    });
  }

  #observe(entry: AgentEntry, observation: Observation): void {
    const before = this.#events.length;
    let dueMs = Number.POSITIVE_INFINITY;
    for (const watch of entry.watches) {
      this.#step(entry, watch, observation);
      if (watch.dueMs < dueMs) dueMs = watch.dueMs;
    }
    entry.ruleDueMs = dueMs;
    if (this.#events.length > before + 1) this.#sortFrom(before);
  }

  /** Sorts the last events by time: a report after a pause may cause several, of different times. */
  #sortFrom(first: number): void {
    const sorted = this.#events.splice(first).sort((a, b) => a.atMs - b.atMs);
    for (const event of sorted) this.#events.push(event);
  }

  #step(entry: AgentEntry, watch: Watch, observation: Observation): void {
    const { state, transitions, nextDueMs } = step(watch.rule.compiled, watch.state, observation);
    watch.state = state;
    watch.dueMs = nextDueMs;
    if (transitions.length > 0) for (const transition of transitions) this.#transition(entry, watch, transition);
  }

  #transition(entry: AgentEntry, watch: Watch, { type, atMs, value }: Transition): void {
    const change = { isFiring: type === "fired", atMs, value };
    const member = memberChange(entry, watch, change);
    if (member !== undefined) {
      this.#addEvent(entry, member);
      return;
    }
    if (change.isFiring) watch.alert = { id: this.#newId(), firedMs: atMs };
    const { alert } = watch;
    if (alert === undefined) return;
    this.#addEvent(entry, alertChange(entry, watch, alert, change));
    if (!change.isFiring) watch.alert = undefined;
  }

  #addEvent(entry: AgentEntry, event: ShardEvent): void {
    this.#events.push(event);
    this.#touched.add(entry);
  }

  #tick(entry: AgentEntry, nowMs: number): void {
    const { offlineMs, apId, receivedMs } = entry;
    if (nowMs >= offlineMs) {
      entry.isOnline = false;
      this.#addEvent(entry, { kind: "presence", isOnline: false, atMs: offlineMs, apId, lastSeenMs: receivedMs });
    }
    const [atMs, before] = [entry.sampleTimeAt(nowMs), this.#events.length];
    for (const watch of entry.watches) {
      if (watch.dueMs > atMs) continue;
      this.#step(entry, watch, { atMs, baseline: entry.baseline });
      this.#touched.add(entry);
    }
    this.#sortFrom(before);
    entry.reschedule();
  }

  /** Gives an agent the rules that apply to it. Keeps the states of rules that it has already. */
  #assign(entry: AgentEntry): void {
    const { info } = entry;
    if (info === undefined) return;
    const rules = [...this.#rules.values()].filter((rule) => appliesTo(rule, info.labels));
    const keys = new Map(rules.map((rule) => [rule.source.id, rule.stateKey]));
    this.#drop(entry, ({ rule }) => keys.get(rule.source.id) !== rule.stateKey);
    const known = new Map(entry.watches.map((watch) => [watch.rule.source.id, watch]));
    entry.watches = rules.map((rule) => {
      const watch = known.get(rule.source.id);
      if (watch !== undefined) return { ...watch, rule };
      return { rule, state: undefined, dueMs: Number.POSITIVE_INFINITY, alert: undefined };
    });
    entry.baseline = rules.some(({ baselines }) => baselines.length > 0)
      ? this.#baselines.lookup(entry.apId)
      : undefined;
    for (const watch of entry.watches) {
      // Absence counts from the last report, also if the rule is newer than that.
      if (watch.state !== undefined || !watch.rule.hasAbsence || entry.tsMs === 0) continue;
      this.#step(entry, watch, { atMs: entry.tsMs, metrics: {}, baseline: entry.baseline });
      this.#touched.add(entry);
    }
    entry.reschedule();
  }

  /** Ends the evaluation of some rules for an agent, and their alerts. */
  #drop(entry: AgentEntry, isDropped: (watch: Watch) => boolean): void {
    const kept = entry.watches.filter((watch) => !isDropped(watch));
    if (kept.length === entry.watches.length) return;
    const change = { isFiring: false, atMs: this.#options.now(), value: undefined, reason: "not_watched" } as const;
    for (const watch of entry.watches) {
      if (kept.includes(watch) || watch.state?.isFiring !== true) continue;
      const member = memberChange(entry, watch, change);
      if (member !== undefined) this.#addEvent(entry, member);
      else if (watch.alert !== undefined) this.#addEvent(entry, alertChange(entry, watch, watch.alert, change));
    }
    entry.watches = kept;
    this.#touched.add(entry);
  }

  /** Removes an agent that does not exist or belongs to another shard. */
  #forget(apId: string): void {
    const entry = this.#entries.get(apId);
    if (entry === undefined) return;
    this.#drop(entry, () => true);
    this.#entries.delete(apId);
    this.#touched.delete(entry);
    this.#dirty.delete(entry);
    this.#store.forget(apId);
  }
}
