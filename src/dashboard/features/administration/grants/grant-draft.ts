import type { Grant, GrantRole, Grants } from "../../../api/fleet-shapes.ts";
import { problemIn } from "../../../selectors/selector-text.ts";

/** The grants of an account in a form. */

export interface GrantRow extends Grant {
  /** Identifies the row while it is edited. */
  id: number;
}

export interface GrantDraft {
  /** Whether only the grants count. Otherwise the account operates all access points. */
  isLimited: boolean;
  rows: readonly GrantRow[];
}

export const ROLE_TEXTS: readonly (readonly [GrantRole, string])[] = [
  ["viewer", "Viewer: sees"],
  ["operator", "Operator: also sends commands"],
  ["manager", "Manager: also registers, labels, changes and deletes"],
];

let lastId = 0;
export const newGrant = (grant: Grant = { role: "operator", selector: "" }): GrantRow => ({ ...grant, id: ++lastId });

export const draftOf = (grants: Grants): GrantDraft => ({
  isLimited: grants !== null,
  rows: grants?.map(newGrant) ?? [],
});

export const grantsOf = ({ isLimited, rows }: GrantDraft): Grants =>
  isLimited ? rows.map(({ role, selector }) => ({ role, selector: selector.trim() })) : null;

export const isValid = ({ isLimited, rows }: GrantDraft): boolean =>
  !isLimited || rows.every(({ selector }) => problemIn(selector) === undefined);
