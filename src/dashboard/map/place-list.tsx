import { useEffect, useRef } from "preact/hooks";
import { href } from "../app/router.ts";
import { ConditionMark, TechnologyBadge } from "../components/badges.tsx";
import type { Mark } from "./drawing/marks.ts";

const MAX_LISTED = 100;

/** Access points at one and the same place: no zoom tells them apart. */
export function PlaceList({ mark: { members }, onClose }: { mark: Mark; onClose(): void }) {
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
        <strong>{members.length} at this place</strong>
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
        <p class="hint">And {members.length - MAX_LISTED} more: search for them by name.</p>
      )}
    </section>
  );
}
