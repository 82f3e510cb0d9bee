import type { Group } from "../../schemas/groups.ts";
import { expandGroups, type Labels, matches, parseSelector } from "../../schemas/selector-syntax.ts";
import { readGrants } from "../api/fleet-calls.ts";
import type { GrantRole, Grants } from "../api/fleet-shapes.ts";
import { session } from "../app/session.ts";
import { useLoaded } from "../lib/load.ts";

/** What the signed-in user may do with which access points. The service decides; the page hides what would be rejected. */

/** In ascending order: each role includes those before it. */
export const GRANT_ROLES: readonly GrantRole[] = ["viewer", "operator", "manager"];

/** Returns the user's grants. Null: no limits. Undefined while they load. */
export function useOwnGrants(): Grants | undefined {
  const { username = "", isAdministrator = false } = session.value ?? {};
  const loaded = useLoaded(
    async (signal): Promise<Grants> =>
      isAdministrator ? null : await readGrants({ kind: "users", name: username }, signal),
    [username, isAdministrator],
  );
  return loaded.data;
}

/** Returns whether grants include a role for an access point with these labels. */
export function allows(
  grants: readonly { role: GrantRole; selector: string }[],
  role: GrantRole,
  labels: Labels,
  groups: readonly Group[],
): boolean {
  const minimum = GRANT_ROLES.indexOf(role);
  return grants.some((grant) => {
    if (GRANT_ROLES.indexOf(grant.role) < minimum) return false;
    const selectors = new Map(
      groups.map(({ name, selector }) => [name, expandGroups(parseSelector(selector), new Map()) ?? []]),
    );
    const selector = expandGroups(parseSelector(grant.selector), selectors);
    // The service knows all groups.
    return selector === undefined || matches(selector, labels);
  });
}

/** Returns whether the user may send commands to an access point. Users operate the access points that they emulate. */
export const mayOperate = (grants: Grants, labels: Labels, groups: readonly Group[], username: string): boolean =>
  grants === null ||
  allows(grants, "operator", labels, groups) ||
  labels.owner === username ||
  // The user sees it without a grant, so it is the user's own.
  !allows(grants, "viewer", labels, groups);

/** Describes the user's grants in one line. */
export function grantsText(grants: Grants): string {
  if (grants === null) return "All access points";
  if (grants.length === 0) return "Only the access points that you emulate";
  return grants
    .map(({ role, selector }) => `${role} of ${selector.trim() === "" ? "all access points" : selector}`)
    .join("; ");
}
