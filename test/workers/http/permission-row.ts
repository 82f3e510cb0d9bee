/** A row of the permission table. */

/** The owner of a job is a user here. */
export type ObjectKind =
  | "user"
  | "agent"
  | "app"
  | "group"
  | "job"
  | "emulator job"
  | "enrolment token"
  | "subscription"
  | "alert rule"
  | "alert"
  | "silence";
/** The kinds of account, an app without permissions, and an app that is limited to one agent. */
export type Caller = "admin" | "user" | "agent" | "app" | "app without permissions" | "app of one agent";
/**
 * The objects that a caller may access: any, only its own, only the listed agent; "yes" for operations without an object; "none" if all
 * objects are absent for it; "visible" if it has access to its own and all others are absent for it.
 */
export type Access = "any" | "own" | "listed" | "yes" | "none" | "visible";

export interface Row {
  route: string;
  /** The kind of object that the path or the end of the query names. */
  object?: ObjectKind;
  query?: string;
  body?: () => object | string;
  /** Of the body, if it is not JSON. */
  contentType?: string;
  /** Any caller except an agent can claim an unused job number. */
  isClaimed?: true;
  /** Creates the object if it is absent. */
  isCreated?: true;
  /** Needs no scope: a token of any scope can access the caller's own objects. */
  needsNoScope?: true;
  access: Partial<Record<Caller, Access>>;
}

export const CALLERS: Caller[] = ["admin", "user", "agent", "app", "app without permissions", "app of one agent"];
