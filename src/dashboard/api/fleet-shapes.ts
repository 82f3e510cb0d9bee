import type * as z from "zod";
import type { EnrolmentTokenCreate } from "../../schemas/enrolment-token.ts";
import type { Grants as StoredGrants } from "../../schemas/grants.ts";

/** Parts of requests and responses that have no name of their own in the schemas. */

/** The grants of an account. Null: operator of all agents. */
export type Grants = StoredGrants["grants"];
export type Grant = NonNullable<Grants>[number];
export type GrantRole = Grant["role"];

export type NewToken = z.input<typeof EnrolmentTokenCreate>;

export type Statistic = "avg" | "sum" | "min" | "max" | "p50" | "p95" | "count";

export interface AggregateGroup {
  /** The values of the `by` labels. Null: the agents without the label. */
  labels: Record<string, string | null>;
  agents: number;
  series: { metric: string; points: { ts: string; value: number }[] }[];
}

export interface Aggregate {
  statistic: Statistic;
  bucket_ms: number;
  start_time: string;
  end_time: string;
  groups: AggregateGroup[];
}
