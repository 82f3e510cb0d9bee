import { ConditionMark, TechnologyBadge } from "../components/badges.tsx";
import { percentText } from "../lib/format.ts";
import { type Marker, radiusOf } from "./drawing/markers.ts";

/** The tooltip needs this much space above the marker; otherwise it is shown below. */
const HEIGHT_PX = 90;

/** Describes the marker under the pointer. Hidden from screen readers: the table shows the same data. */
export function Tooltip({ marker }: { marker: Marker }) {
  const [only] = marker.members;
  const isBelow = marker.y < HEIGHT_PX;
  const top = isBelow ? marker.y + radiusOf(marker) + 6 : marker.y - radiusOf(marker) - 6;
  return (
    <div
      class="map-tooltip"
      aria-hidden="true"
      style={{ left: `clamp(7.5rem, ${marker.x}px, 100% - 7.5rem)`, top: `${top}px` }}
      data-below={isBelow}
    >
      {marker.members.length === 1 && only !== undefined ? (
        <>
          <strong>{only.accessPoint.ap_id}</strong>
          <span class="row">
            <TechnologyBadge type={only.accessPoint.access_point_type} />
            <ConditionMark condition={only.condition} />
            {only.accessPoint.load !== null && <span>Load {percentText(only.accessPoint.load)}</span>}
          </span>
        </>
      ) : (
        <ClusterText marker={marker} />
      )}
    </div>
  );
}

function ClusterText({ marker: { members } }: { marker: Marker }) {
  const offline = members.filter(({ condition }) => condition === "offline").length;
  return (
    <>
      <strong>{members.length} access points</strong>
      <span>{offline === 0 ? "None offline" : `${offline} offline`}. Click to show them.</span>
    </>
  );
}
