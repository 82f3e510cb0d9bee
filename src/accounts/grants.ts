import { Invalid, type ValidationItem } from "../lib/errors.ts";
import { expandGroups, groupsIn, parseSelector } from "../lib/selectors.ts";
import type { StoredGrant } from "./account-tables.ts";
import type { GroupStore } from "./group-store.ts";

/** Every list of agents contains the grants of its reader as conditions of one SQL statement, whose parameters are limited. */
const MAX_LABEL_VALUES = 2_000;

/** Throws `Invalid` if grants refer to unknown groups, or if they have too many conditions. */
export async function checkGrants(
  groups: Pick<GroupStore, "selectors">,
  grants: readonly StoredGrant[] | null,
): Promise<void> {
  const parsed = (grants ?? []).map(({ selector }) => parseSelector(selector));
  const known = await groups.selectors(parsed.flatMap(groupsIn));
  const unknown = parsed.flatMap((terms, i): ValidationItem[] => {
    const name = groupsIn(terms).find((group) => !known.has(group));
    if (name === undefined) return [];
    return [{ loc: ["grants", i, "selector"], type: "unknown_group", msg: `Value error, there is no group '${name}'` }];
  });
  if (unknown.length > 0) throw new Invalid(unknown);
  const conditions = parsed.flatMap((terms) => expandGroups(terms, known) ?? []);
  const values = conditions.reduce((sum, condition) => sum + (condition.values?.length ?? 1), 0);
  if (values > MAX_LABEL_VALUES) {
    const msg = `Value error, the selectors have more than ${MAX_LABEL_VALUES} label values in total`;
    throw new Invalid([{ loc: ["grants"], type: "value_error", msg }]);
  }
}
