import type { Role } from "./roles.ts";

/** Tokens that are no accounts' but open one door each. */
export const SERVICE_TOKENS = ["setup", "enrolment", "scraper"] as const;
export type ServiceTokenKind = (typeof SERVICE_TOKENS)[number];

/** Kinds of caller. */
export type CallerKind = "admin" | "user" | "agent" | "app" | ServiceTokenKind;

/** Who calls. */
export interface Identity {
  kind: CallerKind;
  /** The account's own: a later account of the same name has another one. */
  id: string;
  /** Username, ap_id or app_name. */
  name: string;
  /** Of the account, as its token says. */
  version: number;
  /** When the token ends. */
  expiresAtMs: number;
  roles: readonly Role[];
  /** What the caller's token carries. */
  scopes: ReadonlySet<string>;
  /** Whether that is all that the account grants: the token was not narrowed. */
  hasFullScope: boolean;
  /** The only agents that an app may touch; absent: all. */
  apIds?: readonly string[] | undefined;
}

/** Who calls, and in which request; the audit trail names both. */
export interface Actor extends Identity {
  requestId: string;
}

/** Returns the caller that a bearer token belongs to. Throws `NotAuthenticated` if there is none. */
export type Authenticate = (token: string) => Promise<Identity>;
