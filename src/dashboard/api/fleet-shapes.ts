/** Responses of the operations on labels, groups, grants, enrolment tokens and aggregates. */

export interface AgentLabels {
  ap_id: string;
  labels: Record<string, string>;
}

/** A label key with its values, the most frequent first. */
export interface LabelKey {
  key: string;
  agents: number;
  values: { value: string; agents: number }[];
}

/** The result of a change of many agents' labels, or of its dry run. */
export interface LabelsChanged {
  /** Number of selected agents. */
  agents: number;
  changed: number;
  dry_run: boolean;
}

export interface Group {
  name: string;
  selector: string;
  description: string;
}

export type GrantRole = "viewer" | "operator" | "manager";

export interface Grant {
  role: GrantRole;
  selector: string;
}

/** The grants of an account. Null: operator of all agents. */
export type Grants = readonly Grant[] | null;

export interface EnrolmentToken {
  id: string;
  /** The first characters of the token. */
  prefix: string;
  description: string;
  labels: Record<string, string>;
  max_uses: number | null;
  uses: number;
  expires_at: string | null;
  created_by: string;
  created_at: string;
  revoked_at: string | null;
}

export interface EnrolmentTokenCreate {
  description?: string;
  labels?: Record<string, string>;
  max_uses?: number;
  expires_at?: string;
}

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
