import { useMemo, useState } from "preact/hooks";
import type { AccessPointState } from "../../../schemas/fleet/overview.ts";
import { href } from "../../app/router.ts";
import { ConditionMark, conditionOf, TechnologyBadge } from "../../components/badges.tsx";
import { Ago } from "../../components/time.tsx";
import { percentText } from "../../lib/format.ts";
import { type Column, type Sorting, sorted } from "./sorting.ts";

const PAGE_ROWS = 50;

interface Header {
  column: Column;
  text: string;
  isNumber?: true;
}

const HEADERS: readonly Header[] = [
  { column: "name", text: "Name" },
  { column: "technology", text: "Technology" },
  { column: "state", text: "State" },
  { column: "seen", text: "Last seen" },
  { column: "users", text: "Users", isNumber: true },
  { column: "load", text: "Load", isNumber: true },
  { column: "quality", text: "Quality", isNumber: true },
];

/** Shows the same as the map, for people who cannot use the map. */
export function AccessPointTable({ accessPoints }: { accessPoints: readonly AccessPointState[] }) {
  const [sorting, setSorting] = useState<Sorting>({ column: "name", isDescending: false });
  const [limit, setLimit] = useState(PAGE_ROWS);
  const rows = useMemo(() => sorted(accessPoints, sorting), [accessPoints, sorting]);
  const sortBy = (column: Column) =>
    setSorting({ column, isDescending: sorting.column === column && !sorting.isDescending });
  return (
    <>
      <div class="table">
        <table class="access-points">
          <thead>
            <tr>
              {HEADERS.map(({ column, text, isNumber }) => (
                <th
                  key={column}
                  scope="col"
                  class={isNumber && "number"}
                  aria-sort={sorting.column !== column ? "none" : sorting.isDescending ? "descending" : "ascending"}
                >
                  <button type="button" onClick={() => sortBy(column)}>
                    {text}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, limit).map((accessPoint) => (
              <Row key={accessPoint.ap_id} {...accessPoint} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > limit && (
        <p class="more">
          <button type="button" onClick={() => setLimit(limit + PAGE_ROWS)}>
            Show more
          </button>{" "}
          <span class="soft">
            {limit} of {rows.length.toLocaleString("en")}
          </span>
        </p>
      )}
    </>
  );
}

function Row(accessPoint: AccessPointState) {
  const { ap_id, access_point_type, last_seen, users, load, quality } = accessPoint;
  return (
    <tr>
      <th scope="row">
        <a href={href(["access-points", ap_id])}>{ap_id}</a>
      </th>
      <td>
        <TechnologyBadge type={access_point_type} />
      </td>
      <td>
        <ConditionMark condition={conditionOf(accessPoint)} />
      </td>
      <td>
        <Ago ts={last_seen} />
      </td>
      <td class="number">{users ?? "–"}</td>
      <td class="number">{percentText(load)}</td>
      <td class="number">{percentText(quality)}</td>
    </tr>
  );
}
