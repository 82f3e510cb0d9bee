import { ConditionMark, TechnologyBadge } from "../components/badges.tsx";
import { percentText } from "../lib/percent.ts";
import { type Mark, radiusOf } from "./drawing/marks.ts";

/** Below this there is no room above a mark. */
const ROOM_PX = 90;

/** What is pointed at. For eyes only: the table says the same. */
export function Tooltip({ mark }: { mark: Mark }) {
  const [only] = mark.members;
  const isBelow = mark.y < ROOM_PX;
  const top = isBelow ? mark.y + radiusOf(mark) + 6 : mark.y - radiusOf(mark) - 6;
  return (
    <div
      class="map-tooltip"
      aria-hidden="true"
      style={{ left: `clamp(7.5rem, ${mark.x}px, 100% - 7.5rem)`, top: `${top}px` }}
      data-below={isBelow}
    >
      {mark.members.length === 1 && only !== undefined ? (
        <>
          <strong>{only.accessPoint.ap_id}</strong>
          <span class="row">
            <TechnologyBadge type={only.accessPoint.access_point_type} />
            <ConditionMark condition={only.condition} />
            {only.accessPoint.load !== null && <span>Load {percentText(only.accessPoint.load)}</span>}
          </span>
        </>
      ) : (
        <Several mark={mark} />
      )}
    </div>
  );
}

function Several({ mark: { members } }: { mark: Mark }) {
  const offline = members.filter(({ condition }) => condition === "offline").length;
  return (
    <>
      <strong>{members.length} access points</strong>
      <span>{offline === 0 ? "None offline" : `${offline} offline`}. Click to see them.</span>
    </>
  );
}
