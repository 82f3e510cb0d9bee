import type * as z from "zod";
import type { EnrolmentTokenCreate } from "../../schemas/enrolment-token.ts";
import type { Grants as StoredGrants } from "../../schemas/grants.ts";
import type { Aggregate } from "../../schemas/metrics.ts";

/** Parts of requests and responses that have no name of their own in the schemas. */

/** The grants of an account. Null: operator of all agents. */
export type Grants = StoredGrants["grants"];
export type Grant = NonNullable<Grants>[number];
export type GrantRole = Grant["role"];

export type NewToken = z.input<typeof EnrolmentTokenCreate>;

export type AggregateGroup = Aggregate["groups"][number];
