import type { LeafRule } from "../../rules/leaves.ts";
import type { ClickHouse } from "../../storage/clickhouse.ts";
import { createQuery } from "./clickhouse-query.ts";
import { type AgentChanges, readChanges } from "./rule-changes.ts";
import type { RuleRange } from "./rule-range.ts";
import {
  type AgentHour,
  countReports,
  type ReportColumns,
  type ReportsQuery,
  readHours,
  readReports,
  readValuesAt,
} from "./rule-reports.ts";

/** Reads past samples for the evaluation of rules. Throws `Unavailable` if the store does not respond or a query takes too long. */
export interface RuleReader {
  /** Returns the changes of each agent that matter to a rule, if `hasChanges`. */
  changes(range: RuleRange, rule: LeafRule): Promise<AgentChanges[]>;
  /** Returns reports in the order of agent and time, up to the limit. */
  reports(query: ReportsQuery): Promise<ReportColumns>;
  /** Returns about how many rows `reports` has for each agent. */
  countReports(query: Omit<ReportsQuery, "limit">): Promise<number[]>;
  /** Returns the value of a metric at some times of each agent. */
  valuesAt(
    range: RuleRange,
    metric: string,
    momentsMs: readonly (readonly number[])[],
  ): Promise<(number | undefined)[][]>;
  /** Returns the sums of a metric by hour, for baselines. */
  hours(range: Omit<RuleRange, "resolution">, metric: string): Promise<AgentHour[]>;
}

export function createRuleReader(clickhouse: ClickHouse): RuleReader {
  const columns = createQuery(clickhouse, "JSONColumnsWithMetadata");
  return {
    changes: (range, rule) => readChanges(columns, range, rule),
    reports: (query) => readReports(columns, query),
    countReports: (query) => countReports(columns, query),
    valuesAt: (range, metric, momentsMs) => readValuesAt(columns, range, metric, momentsMs),
    hours: (range, metric) => readHours(columns, range, metric),
  };
}
