import type { WatchedAgent } from "../../../accounts/agents/agent-lists.ts";
import type { BaselineLookup, RuleState } from "../../../rules/evaluator.ts";
import { type MutableRate, newRate, type RateState } from "../../../rules/rate.ts";
import { onlineTimeoutMs } from "../../presence.ts";
import type { LastValue } from "./quiet-limits.ts";
import { newWatch, type Watch, WatchSet } from "./watch-set.ts";
import type { WatchedRule } from "./watched-rule.ts";

/** Reports may be under way for this long when a tick is due: the report comes first then. */
const TICK_DELAY_MS = 1_000;

/** What the shard knows of one agent. */
export class AgentEntry {
  readonly apId: string;
  /** Undefined: libSQL has no such agent yet, as far as the shard knows. */
  info: WatchedAgent | undefined;
  readonly watches = new WatchSet();
  isOnline = false;
  /** When the service last received something from it. */
  receivedMs = 0;
  /** The time of its newest sample, by its own clock. */
  tsMs = 0;
  /** How far its clock is behind that of the service, including the time under way. */
  offsetMs = 0;
  /** Whether the telemetry store was asked for its newest sample. */
  isSeeded = false;
  /** Undefined if no rule compares with earlier days. */
  baseline: BaselineLookup | undefined;
  /** When `tick` may change something, by the clock of the service. */
  dueMs = Number.POSITIVE_INFINITY;

  constructor(apId: string) {
    this.apId = apId;
  }

  /** Returns the time of the agent's samples at a time of the service. */
  sampleTimeAt(nowMs: number): number {
    return nowMs - this.offsetMs - TICK_DELAY_MS;
  }

  get offlineMs(): number {
    const { info, isOnline, receivedMs } = this;
    return info !== undefined && isOnline ? receivedMs + onlineTimeoutMs(info.interval) : Number.POSITIVE_INFINITY;
  }

  /** Computes `dueMs`. */
  schedule(): void {
    this.dueMs = Math.min(this.offlineMs, this.watches.dueMs(this.tsMs) + this.offsetMs + TICK_DELAY_MS);
  }
}

/** Points have ages instead of times. */
type StoredRate = [perSecond: number | null, ...points: number[]];
/** Times are relative to the newest sample: most are equal to it, and the rows are written often. */
type StoredState = [
  ageMs: number,
  reportAgeMs: number | null,
  values: readonly (number | null)[],
  isFiring: 0 | 1,
  sinceAgeMs: number | null,
  rates: readonly StoredRate[] | null,
  means: NonNullable<RuleState["means"]> | null,
];
type StoredSharedRate = [metric: string, overMs: number, rate: StoredRate];
type StoredWatch = [ruleId: string, state: StoredState | null, alert: [id: string, firedMs: number] | null];
type StoredEntry = [
  isOnline: 0 | 1,
  receivedMs: number,
  tsMs: number,
  offsetMs: number,
  values: LastValue[],
  /** The active ones. Quiet rules have no state. */
  watches: StoredWatch[],
  /** Absent in states from before rates were shared. */
  rates?: StoredSharedRate[],
];

export function serializeEntry({ isOnline, receivedMs, tsMs, offsetMs, watches }: AgentEntry): string {
  const stored = watches.active.map(({ rule, state, alert }): StoredWatch => {
    const firing: StoredWatch[2] = alert === undefined ? null : [alert.id, alert.firedMs];
    if (state === undefined) return [rule.source.id, null, firing];
    return [rule.source.id, fromState(state, tsMs), firing];
  });
  const values = watches.limits.lastValues();
  const rates = watches.rates.all.map(({ metric, overMs, rate }): StoredSharedRate => {
    return [metric, overMs, fromRate(rate, tsMs)];
  });
  const entry: StoredEntry = [isOnline ? 1 : 0, receivedMs, tsMs, offsetMs, values, stored, rates];
  return JSON.stringify(entry);
}

/**
 * Restores an entry.
 * @param text written by `serializeEntry`
 * @param rules those that apply to the agent, as they were when the text was written
 */
export function restoreEntry(entry: AgentEntry, text: string, rules: readonly WatchedRule[]): void {
  const [isOnline, receivedMs, tsMs, offsetMs, values, watches, rates = []] = JSON.parse(text) as StoredEntry;
  Object.assign(entry, { isOnline: isOnline === 1, receivedMs, tsMs, offsetMs });
  const stored = new Map(watches.map((watch) => [watch[0], watch]));
  const active = rules.flatMap((rule): Watch[] => {
    const watch = stored.get(rule.source.id);
    if (watch === undefined) return rule.thresholds === undefined ? [newWatch(rule)] : [];
    const [, state, alert] = watch;
    const firing = alert === null ? undefined : { id: alert[0], firedMs: alert[1] };
    return [newWatch(rule, state === null ? undefined : toState(state, tsMs), firing)];
  });
  const activeRules = new Set(active.map(({ rule }) => rule));
  entry.watches.reset(
    active,
    rules.filter((rule) => !activeRules.has(rule)),
    tsMs,
  );
  entry.watches.limits.restore(values, tsMs);
  entry.watches.rates.restore(rates.map(([metric, overMs, rate]) => ({ metric, overMs, rate: toRate(rate, tsMs) })));
}

function fromState(state: RuleState, tsMs: number): StoredState {
  const { atMs, reportedMs, values, isFiring, sinceMs, rates, means = null } = state;
  const age = (ms: number | null): number | null => (ms === null ? null : tsMs - ms);
  const storedRates = rates?.map((rate) => fromRate(rate, tsMs)) ?? null;
  return [tsMs - atMs, age(reportedMs), values, isFiring ? 1 : 0, age(sinceMs), storedRates, means];
}

function toState(stored: StoredState, tsMs: number): RuleState {
  const [ageMs, reportAgeMs, values, isFiring, sinceAgeMs, rates, means] = stored;
  const time = (age: number | null): number | null => (age === null ? null : tsMs - age);
  return {
    atMs: tsMs - ageMs,
    reportedMs: time(reportAgeMs),
    values,
    ...(rates !== null && { rates: rates.map((rate) => toRate(rate, tsMs)) }),
    ...(means !== null && { means }),
    isFiring: isFiring === 1,
    sinceMs: time(sinceAgeMs),
  };
}

const fromRate = ({ perSecond, points }: RateState, tsMs: number): StoredRate => [
  perSecond,
  ...relativeTo(tsMs, points),
];

function toRate(stored: StoredRate, tsMs: number): MutableRate {
  // States from before rates were shared have another form.
  if (!Array.isArray(stored)) return newRate();
  const [perSecond, ...points] = stored;
  return { perSecond, points: relativeTo(tsMs, points) };
}

/** Turns the times of points into ages, and ages into times. */
const relativeTo = (tsMs: number, points: readonly number[]): number[] =>
  points.map((number, i) => (i % 2 === 0 ? tsMs - number : number));
