import type { WatchedAgent } from "../../../accounts/agents/agent-lists.ts";
import type { BaselineLookup } from "../../../rules/conditions.ts";
import { nextDueMs, type RuleState } from "../../../rules/evaluator.ts";
import { onlineTimeoutMs } from "../../presence.ts";
import type { WatchedRule } from "./watched-rule.ts";

/** A rule and its state for one agent. */
export interface Watch {
  rule: WatchedRule;
  /** Undefined: nothing is known yet. */
  state: RuleState | undefined;
  /** When a tick may change the state, in the time of the agent's samples. */
  dueMs: number;
  /** The alert that fires. Undefined for a rule about groups: their alerts are in libSQL. */
  alert: FiringAlert | undefined;
}

export interface FiringAlert {
  id: string;
  firedMs: number;
}

/** Reports may be under way for this long when a tick is due: the report comes first then. */
const TICK_DELAY_MS = 1_000;

/** What the shard knows of one agent. */
export class AgentEntry {
  readonly apId: string;
  /** Undefined: libSQL has no such agent yet, as far as the shard knows. */
  info: WatchedAgent | undefined;
  watches: Watch[] = [];
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
  /** When a tick may change the state of a rule, in the time of the agent's samples. */
  ruleDueMs = Number.POSITIVE_INFINITY;
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

  /** Computes `dueMs` from the due times of all rules. */
  reschedule(): void {
    this.ruleDueMs = Number.POSITIVE_INFINITY;
    for (const { dueMs } of this.watches) if (dueMs < this.ruleDueMs) this.ruleDueMs = dueMs;
    this.schedule();
  }

  /** Computes `dueMs`. */
  schedule(): void {
    this.dueMs = Math.min(this.offlineMs, this.ruleDueMs + this.offsetMs + TICK_DELAY_MS);
  }
}

/** Times are relative to the newest sample: most are equal to it, and the rows are written often. */
type StoredState = [
  ageMs: number,
  reportAgeMs: number | null,
  values: readonly (number | null)[],
  isFiring: 0 | 1,
  sinceAgeMs: number | null,
  rates: NonNullable<RuleState["rates"]> | null,
];
type StoredWatch = [ruleId: string, state: StoredState | null, alert: [id: string, firedMs: number] | null];
type StoredEntry = [isOnline: 0 | 1, receivedMs: number, tsMs: number, offsetMs: number, watches: StoredWatch[]];

export function serializeEntry({ isOnline, receivedMs, tsMs, offsetMs, watches }: AgentEntry): string {
  const stored = watches.map(({ rule, state, alert }): StoredWatch => {
    const firing: StoredWatch[2] = alert === undefined ? null : [alert.id, alert.firedMs];
    if (state === undefined) return [rule.source.id, null, firing];
    const { atMs, reportedMs, values, isFiring, sinceMs, rates } = state;
    const age = (ms: number | null): number | null => (ms === null ? null : tsMs - ms);
    const fields: StoredState = [tsMs - atMs, age(reportedMs), values, isFiring ? 1 : 0, age(sinceMs), rates ?? null];
    return [rule.source.id, fields, firing];
  });
  return JSON.stringify([isOnline ? 1 : 0, receivedMs, tsMs, offsetMs, stored] satisfies StoredEntry);
}

/**
 * Restores an entry. Drops the states of rules that are not known.
 * @param text written by `serializeEntry`
 */
export function restoreEntry(entry: AgentEntry, text: string, rules: ReadonlyMap<string, WatchedRule>): void {
  const [isOnline, receivedMs, tsMs, offsetMs, watches] = JSON.parse(text) as StoredEntry;
  Object.assign(entry, { isOnline: isOnline === 1, receivedMs, tsMs, offsetMs });
  const time = (ageMs: number | null): number | null => (ageMs === null ? null : tsMs - ageMs);
  entry.watches = watches.flatMap(([ruleId, stored, alert]): Watch[] => {
    const rule = rules.get(ruleId);
    if (rule === undefined) return [];
    const firing = alert === null ? undefined : { id: alert[0], firedMs: alert[1] };
    if (stored === null) return [{ rule, state: undefined, dueMs: Number.POSITIVE_INFINITY, alert: firing }];
    const [ageMs, reportAgeMs, values, isFiring, sinceAgeMs, rates] = stored;
    const state: RuleState = {
      atMs: tsMs - ageMs,
      reportedMs: time(reportAgeMs),
      values,
      ...(rates !== null && { rates }),
      isFiring: isFiring === 1,
      sinceMs: time(sinceAgeMs),
    };
    return [{ rule, state, dueMs: nextDueMs(rule.compiled, state), alert: firing }];
  });
}
