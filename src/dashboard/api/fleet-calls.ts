import type * as z from "zod";
import type {
  EnrolmentToken,
  EnrolmentTokenCreate,
  NewEnrolmentToken,
} from "../../schemas/accounts/enrolment-token.ts";
import type { Grants as StoredGrants } from "../../schemas/accounts/grants.ts";
import type { Group } from "../../schemas/fleet/groups.ts";
import type { LabelChanges, LabelledAgent, LabelSummary, LabelsChanged } from "../../schemas/fleet/labels.ts";
import type { Aggregate, Statistic } from "../../schemas/metrics.ts";
import type { Ack } from "../../schemas/primitives.ts";
import { call, callForText, pathTo, V1 } from "./call.ts";

/** Parts of requests and responses that have no name of their own in the schemas. */

/** The grants of an account. Null: operator of all agents. */
export type Grants = StoredGrants["grants"];
export type Grant = NonNullable<Grants>[number];
export type GrantRole = Grant["role"];

export type NewToken = z.input<typeof EnrolmentTokenCreate>;

export type AggregateGroup = Aggregate["groups"][number];

/** The API operations on labels, groups, grants, enrolment tokens and aggregates. */

/** Values of each label key that are requested for completion. */
const MAX_VALUES = 200;

/** An empty selector is not sent: it has no effect. */
const optional = (selector: string): string | undefined => (selector === "" ? undefined : selector);

export const listLabels = (signal?: AbortSignal): Promise<LabelSummary[]> =>
  call("GET", `${V1}/labels`, { query: { limit: MAX_VALUES }, signal });
export const readLabels = (apId: string, signal?: AbortSignal): Promise<LabelledAgent> =>
  call("GET", pathTo("agents", apId, "labels"), { signal });
export const changeLabels = (apId: string, body: LabelChanges): Promise<LabelledAgent> =>
  call("PUT", pathTo("agents", apId, "labels"), { body });

export interface ManyLabels {
  selector: string;
  labels: LabelChanges;
  dry_run: boolean;
}
export const changeManyLabels = (body: ManyLabels): Promise<LabelsChanged> => call("POST", `${V1}/labels`, { body });
export const exportLabels = (selector: string): Promise<string> =>
  callForText("GET", `${V1}/labels/export`, { query: { selector: optional(selector) } });
export const importLabels = (csv: string, isDryRun: boolean): Promise<LabelsChanged> =>
  call("POST", `${V1}/labels/import`, { query: { dry_run: String(isDryRun) }, csv });

export const listGroups = (signal?: AbortSignal): Promise<Group[]> => call("GET", `${V1}/groups/`, { signal });
export const saveGroup = ({ name, ...body }: Group): Promise<Group> => call("PUT", pathTo("groups", name), { body });
export const deleteGroup = (name: string): Promise<Ack> => call("DELETE", pathTo("groups", name));

/** An account that has grants. */
export interface GrantHolder {
  kind: "users" | "third_party_apps";
  name: string;
}
export const readGrants = async ({ kind, name }: GrantHolder, signal?: AbortSignal): Promise<Grants> =>
  (await call<{ grants: Grants }>("GET", pathTo(kind, name, "grants"), { signal })).grants;
export const changeGrants = ({ kind, name }: GrantHolder, grants: Grants): Promise<{ grants: Grants }> =>
  call("PUT", pathTo(kind, name, "grants"), { body: { grants } });

export const listEnrolmentTokens = (signal?: AbortSignal): Promise<EnrolmentToken[]> =>
  call("GET", `${V1}/enrolment_tokens/`, { signal });
export const createEnrolmentToken = (body: NewToken): Promise<NewEnrolmentToken> =>
  call("POST", `${V1}/enrolment_tokens/`, { body });
export const revokeEnrolmentToken = (id: string): Promise<Ack> => call("DELETE", pathTo("enrolment_tokens", id));

export interface AggregateRequest {
  selector: string;
  metrics: readonly string[];
  /** A label key. Empty: one series of all selected agents. */
  by: string;
  statistic: Statistic;
  /** The time up to now. */
  window?: string;
  /** Instead of a window. */
  period?: { start_time: string; end_time: string };
}
export const aggregate = (request: AggregateRequest, signal?: AbortSignal) => {
  const { selector, metrics, by, statistic, window, period } = request;
  return call<Aggregate>("GET", `${V1}/metrics/aggregate`, {
    query: { selector: optional(selector), metrics: metrics.join(), by: by || undefined, statistic, window, ...period },
    signal,
  });
};
