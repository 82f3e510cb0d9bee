import type { ResolvedGrant } from "./agent-scope.ts";
import type { Role } from "./roles.ts";

/** Tokens from the settings that belong to no account. Each allows one operation. */
export const SERVICE_TOKENS = ["setup", "enrolment", "scraper"] as const;
export type ServiceTokenKind = (typeof SERVICE_TOKENS)[number];

export type CallerKind = "admin" | "user" | "agent" | "app" | ServiceTokenKind;

/** The authenticated caller. */
export interface Identity {
  kind: CallerKind;
  /** Id of the account. A later account of the same name has another id. */
  id: string;
  /** Username, ap_id or app_name. */
  name: string;
  /** Version of the account that the token was issued for. */
  version: number;
  /** When the token expires. */
  expiresAtMs: number;
  roles: readonly Role[];
  /** Scopes of the token. */
  scopes: ReadonlySet<string>;
  /** Whether the token has all scopes that the account grants. False if the login requested fewer. */
  hasFullScope: boolean;
  /** The only agents that an app may access, in addition to its grants. Undefined for all agents. */
  apIds?: readonly string[] | undefined;
  /** The label that names the agent in the metrics that an app writes and reads. Undefined: that of the protocol. */
  agentLabel?: string | undefined;
  /** Grants of a user or an app. Undefined if it operates all agents. */
  grants?: readonly ResolvedGrant[] | undefined;
}

/** The caller and the id of its request. The audit trail records both. */
export interface Actor extends Identity {
  requestId: string;
}

/** Returns the caller that a bearer token belongs to. Throws `NotAuthenticated` if the token is not valid. */
export type Authenticate = (token: string) => Promise<Identity>;
