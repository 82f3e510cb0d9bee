import { useEffect, useRef } from "preact/hooks";
import { href } from "../app/router.ts";
import { ConditionMark, TechnologyBadge } from "../components/badges.tsx";
import type { Marker } from "./drawing/markers.ts";

const MAX_LISTED = 100;

/** Lists access points at the same position, which no zoom can separate. */
export function PlaceList({ marker: { members }, onClose }: { marker: Marker; onClose(): void }) {
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => close.current?.focus(), []);
  return (
    <section
      class="map-list card"
      aria-label="Access points at one place"
      onKeyDown={({ key }) => {
        if (key === "Escape") onClose();
      }}
    >
      <header class="spread">
        <strong>{members.length} access points at this place</strong>
        <button ref={close} type="button" class="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </header>
      <ul>
        {members.slice(0, MAX_LISTED).map(({ accessPoint: { ap_id, access_point_type }, condition }) => (
          <li key={ap_id}>
            <a href={href(["access-points", ap_id])}>{ap_id}</a>
            <span class="row">
              <TechnologyBadge type={access_point_type} />
              <ConditionMark condition={condition} />
            </span>
          </li>
        ))}
      </ul>
      {members.length > MAX_LISTED && (
        <p class="hint">{members.length - MAX_LISTED} more are not listed. Search for them by name.</p>
      )}
    </section>
  );
}
