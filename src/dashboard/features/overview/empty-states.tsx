import type { Grants } from "../../api/fleet-shapes.ts";
import { href, replaceRoute } from "../../app/router.ts";
import { may } from "../../app/session.ts";
import { Empty } from "../../components/states.tsx";

export function NoMatches() {
  return (
    <Empty title="No access points match these filters">
      <p>
        <button type="button" onClick={() => replaceRoute([])}>
          Clear filters
        </button>
      </p>
    </Empty>
  );
}

const isWithoutGrants = (grants: Grants | undefined): boolean => grants?.length === 0;

/** Explains a short list to a user without grants. */
export function OnlyOwn({ grants }: { grants: Grants | undefined }) {
  return isWithoutGrants(grants) ? (
    <p class="hint">You see only the access points that you emulate. An administrator can give you access to others.</p>
  ) : null;
}

/** Replaces the page of a user who sees no access points. */
export function NoAccessPoints({ grants }: { grants: Grants | undefined }) {
  // An empty selector includes all access points.
  const isLimited = grants?.every(({ selector }) => selector.trim() !== "") ?? false;
  const title = isWithoutGrants(grants)
    ? "You see only the access points that you emulate"
    : isLimited
      ? "No access points that you may see yet"
      : "No access points yet";
  return (
    <div class="card">
      <Empty title={title}>
        {may("emulator:run") && (
          <p>
            <a class="button primary" href={href(["emulator"])}>
              Start emulated access points
            </a>
          </p>
        )}
        {isLimited ? (
          <p>To see others, ask an administrator for access to them.</p>
        ) : (
          <p>
            Or connect a machine of your own with <code>npm run agent</code>: it reports its load and network counters
            as an access point.
          </p>
        )}
      </Empty>
    </div>
  );
}
