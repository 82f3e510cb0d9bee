import type { AccessPointState } from "../../../schemas/overview.ts";
import { conditionOf } from "../../components/badges.tsx";
import { technologyName } from "./filters.ts";

/** What the table of access points can be sorted by. */
export type Column = "name" | "technology" | "state" | "seen" | "users" | "load" | "quality";

export interface Sorting {
  column: Column;
  isDescending: boolean;
}

/** What a row has in a column; nothing where it is not known. */
const VALUES: Record<Column, (accessPoint: AccessPointState) => string | number | null> = {
  name: ({ ap_id }) => ap_id,
  technology: ({ access_point_type }) => technologyName(access_point_type),
  state: conditionOf,
  seen: ({ last_seen }) => (last_seen === null ? null : Date.parse(last_seen)),
  users: ({ users }) => users,
  load: ({ load }) => load,
  quality: ({ quality }) => quality,
};

/** In a new order; those without a value come last either way, equals stay in the order of their names. */
export function sorted(accessPoints: readonly AccessPointState[], { column, isDescending }: Sorting) {
  const inColumn = VALUES[column];
  const direction = isDescending ? -1 : 1;
  return accessPoints
    .map((accessPoint) => ({ accessPoint, value: inColumn(accessPoint) }))
    .sort(({ value: one }, { value: other }) => {
      if (one === null || other === null) return Number(one === null) - Number(other === null);
      return one === other ? 0 : one < other ? -direction : direction;
    })
    .map(({ accessPoint }) => accessPoint);
}
