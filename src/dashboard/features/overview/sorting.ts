import type { AccessPointState } from "../../../schemas/fleet/overview.ts";
import { conditionOf } from "../../components/badges.tsx";
import { technologyName } from "./filters.ts";

/** The columns of the table of access points. All of them can be sorted. */
export type Column = "name" | "technology" | "state" | "seen" | "users" | "load" | "quality";

export interface Sorting {
  column: Column;
  isDescending: boolean;
}

/** The value of a row in a column, or null if it is unknown. */
const VALUES: Record<Column, (accessPoint: AccessPointState) => string | number | null> = {
  name: ({ ap_id }) => ap_id,
  technology: ({ access_point_type }) => technologyName(access_point_type),
  state: conditionOf,
  seen: ({ last_seen }) => (last_seen === null ? null : Date.parse(last_seen)),
  users: ({ users }) => users,
  load: ({ load }) => load,
  quality: ({ quality }) => quality,
};

/** Returns a sorted copy. Rows without a value are last in both directions. Equal rows keep their order, by name. */
export function sorted(accessPoints: readonly AccessPointState[], { column, isDescending }: Sorting) {
  const columnValue = VALUES[column];
  const direction = isDescending ? -1 : 1;
  return accessPoints
    .map((accessPoint) => ({ accessPoint, value: columnValue(accessPoint) }))
    .sort(({ value: one }, { value: other }) => {
      if (one === null || other === null) return Number(one === null) - Number(other === null);
      return one === other ? 0 : one < other ? -direction : direction;
    })
    .map(({ accessPoint }) => accessPoint);
}
