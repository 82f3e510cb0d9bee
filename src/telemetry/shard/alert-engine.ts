import type { WatchChanges } from "../../alerts/watch-feed.ts";
import { log } from "../../lib/log.ts";
import { type Observation, step } from "../../rules/evaluator.ts";
import { takeQuietReport } from "../../rules/quiet-report.ts";
import { onlineTimeoutMs } from "../presence.ts";
import type { AgentSample } from "../store/telemetry-store.ts";
import { AgentEntries } from "./alerting/agent-entries.ts";
import { type AgentEntry, restoreEntry, serializeEntry } from "./alerting/agent-entry.ts";
import { Baselines } from "./alerting/baselines.ts";
import type { EngineStore } from "./alerting/engine-store.ts";
import { EventRecorder } from "./alerting/event-recorder.ts";
import { baselineNeeds, unseenAgents } from "./alerting/needs.ts";
import { newWatch, type Watch } from "./alerting/watch-set.ts";
import { appliesTo, hasAbsence, hasMoved, type WatchedRule, watchRules } from "./alerting/watched-rule.ts";

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
}

/** Events that wait for libSQL. Beyond it, new ones are dropped. */
const MAX_OUTGOING = 100_000;
const MAX_AGENTS = 100_000;

export class AlertEngine {
  readonly #options: AlertEngineOptions;
  readonly #store: EngineStore;
  #entries = new AgentEntries(MAX_AGENTS);
  #rules = new Map<string, WatchedRule>();
  #baselines: Baselines;
  /** Agents whose state is not written. */
  #dirty = new Set<AgentEntry>();
  /** Agents whose state must be written with the next transaction. */
  #touched = new Set<AgentEntry>();
  readonly #events: EventRecorder;
  #dueMs = Number.POSITIVE_INFINITY;
  readonly #unknown = new Set<string>();

  constructor(options: AlertEngineOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#events = new EventRecorder({
      onEvent: (entry) => this.#touched.add(entry),
      newId: () => crypto.randomUUID(),
    });
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
    this.#events.takeAll();
    this.#store.recount();
    this.#baselines = new Baselines(this.#store);
    this.#rules = watchRules(this.#store.rules());
    for (const agent of this.#store.agents()) this.#entries.getOrAdd(agent.apId).info = agent;
    for (const { key, value } of this.#store.states()) {
      const entry = this.#entries.getOrAdd(key);
      restoreEntry(entry, value, this.#rulesFor(entry));
    }
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
      this.#drop(entry, (rule) => !appliesTo(rule, agent.labels) || hasMoved(rule, entry.info?.labels, agent.labels));
      const isNew = entry.info === undefined;
      entry.info = agent;
      changed.add(entry);
      this.#assign(entry);
      if (isNew) this.evaluate(pendingOf(agent.apId));
    }
    const gone = agents === undefined ? [] : (agents.names ?? [...this.#entries.names()]);
    for (const apId of gone) if (!found.has(apId)) this.#forget(apId);
    for (const entry of changed) {
      if (this.#entries.get(entry.apId) !== entry) continue;
      this.#assign(entry);
      // What is stored must belong to the rules that are stored.
      this.#touched.add(entry);
    }
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
    const events = this.#events.takeAll();
    const room = Math.max(MAX_OUTGOING - this.#store.outgoingCount, 0);
    for (const event of events.slice(0, room)) this.#store.addOutgoing(event);
    if (room < events.length) log.error("shard events dropped", { events: events.length - room });
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
    if (tsMs > entry.tsMs) {
      const lastMs = entry.tsMs;
      entry.tsMs = tsMs;
      entry.offsetMs = receivedMs - tsMs;
      this.#dirty.add(entry);
      this.#observe(entry, lastMs, metrics);
    } else this.#observePart(entry, tsMs, metrics);
    entry.schedule();
    if (entry.dueMs < this.#dueMs) this.#dueMs = entry.dueMs;
  }

  #receive(entry: AgentEntry, receivedMs: number): void {
    entry.receivedMs = receivedMs;
    this.#dirty.add(entry);
    if (entry.isOnline || this.#options.now() - receivedMs >= onlineTimeoutMs(entry.info?.interval)) return;
    entry.isOnline = true;
    this.#events.presence(entry, true, receivedMs);
  }

  #observe(entry: AgentEntry, lastMs: number, metrics: AgentSample["metrics"]): void {
    const { watches, tsMs: atMs, baseline } = entry;
    const before = this.#events.count;
    watches.take(lastMs, atMs, metrics);
    let canSettle = false;
    for (const watch of watches.active) {
      const { rule, state } = watch;
      if (state !== undefined && takeQuietReport(rule.compiled, state, atMs, metrics))
        watch.dueMs = atMs + rule.absenceMs;
      else this.#step(entry, watch, { atMs, metrics, baseline });
      canSettle ||= rule.thresholds !== undefined && watch.state?.isFiring === false && watch.state.sinceMs === null;
    }
    if (canSettle) watches.settle(atMs);
    this.#events.sortFrom(before);
  }

  /** Some collectors send the metrics of one time in several requests. Late and repeated values change nothing. */
  #observePart(entry: AgentEntry, atMs: number, reported: AgentSample["metrics"]): void {
    const { watches, tsMs, baseline } = entry;
    const metrics = watches.limits.newerThanLast(atMs, reported);
    if (metrics === undefined) return;
    this.#dirty.add(entry);
    const before = this.#events.count;
    watches.take(tsMs, atMs, metrics);
    for (const watch of watches.active) this.#step(entry, watch, { atMs, metrics, baseline, isPart: true });
    watches.settle(tsMs);
    this.#events.sortFrom(before);
  }

  #step(entry: AgentEntry, watch: Watch, observation: Observation): void {
    const { state, transitions, nextDueMs } = step(watch.rule.compiled, watch.state, observation);
    watch.state = state;
    watch.dueMs = nextDueMs;
    if (transitions.length > 0) for (const transition of transitions) this.#events.transition(entry, watch, transition);
  }

  #tick(entry: AgentEntry, nowMs: number): void {
    const { offlineMs } = entry;
    if (nowMs >= offlineMs) {
      entry.isOnline = false;
      this.#events.presence(entry, false, offlineMs);
    }
    const [atMs, before] = [entry.sampleTimeAt(nowMs), this.#events.count];
    entry.watches.wakeAbsent(entry.tsMs, atMs);
    for (const watch of entry.watches.active) {
      if (watch.dueMs > atMs) continue;
      this.#step(entry, watch, { atMs });
      this.#touched.add(entry);
    }
    this.#events.sortFrom(before);
    entry.schedule();
  }

  #rulesFor({ info }: AgentEntry): WatchedRule[] {
    return info === undefined ? [] : [...this.#rules.values()].filter((rule) => appliesTo(rule, info.labels));
  }

  /** Gives an agent the rules that apply to it. Keeps the states of rules that it has already. */
  #assign(entry: AgentEntry): void {
    if (entry.info === undefined) return;
    const rules = this.#rulesFor(entry);
    const keys = new Map(rules.map((rule) => [rule.source.id, rule.stateKey]));
    this.#drop(entry, (rule) => keys.get(rule.source.id) !== rule.stateKey);
    const { watches } = entry;
    const active = new Map(watches.active.map((watch) => [watch.rule.source.id, watch]));
    const quiet = new Set([...watches.quiet].map(({ source }) => source.id));
    watches.reset(
      rules
        .filter(({ source }) => !quiet.has(source.id))
        .map((rule) => ({ ...(active.get(rule.source.id) ?? newWatch(rule)), rule })),
      rules.filter(({ source }) => quiet.has(source.id)),
      entry.tsMs,
    );
    const hasBaseline = rules.some(({ baselines }) => baselines.length > 0);
    entry.baseline = hasBaseline ? this.#baselines.lookup(entry.apId) : undefined;
    for (const watch of watches.active) {
      // Absence counts from the last report, also if the rule is newer than that.
      if (watch.state !== undefined || !hasAbsence(watch.rule) || entry.tsMs === 0) continue;
      this.#step(entry, watch, { atMs: entry.tsMs, metrics: {}, baseline: entry.baseline });
      this.#touched.add(entry);
    }
    entry.schedule();
  }

  /** Ends the evaluation of some rules for an agent, and their alerts. */
  #drop(entry: AgentEntry, isDropped: (rule: WatchedRule) => boolean): void {
    const { watches } = entry;
    for (const watch of watches.active)
      if (isDropped(watch.rule)) this.#events.dropped(entry, watch, this.#options.now());
    watches.reset(
      watches.active.filter(({ rule }) => !isDropped(rule)),
      [...watches.quiet].filter((rule) => !isDropped(rule)),
      entry.tsMs,
    );
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
