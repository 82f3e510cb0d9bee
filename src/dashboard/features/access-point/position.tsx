import { useMemo } from "preact/hooks";
import type { AccessPointState } from "../../../schemas/overview.ts";
import { NetworkMap } from "../../map/network-map.tsx";
import type { CurrentStatus } from "./current-status.ts";

interface PositionProps {
  apId: string;
  type: string | null;
  /** From the configuration. */
  geolocation: unknown;
  status: CurrentStatus | undefined;
}

/** Shows the access point on a map, with its coordinates. */
export function Position({ apId, type, geolocation, status }: PositionProps) {
  // The service validates a geolocation before it stores the configuration.
  const { latitude, longitude } = (geolocation ?? {}) as { latitude?: number; longitude?: number };
  const points = useMemo((): AccessPointState[] => {
    if (latitude === undefined || longitude === undefined) return [];
    const { condition, lastSeen = null, load = null, quality = null, users = null } = status ?? {};
    return [
      {
        ap_id: apId,
        access_point_type: type,
        latitude,
        longitude,
        site: null,
        onboard: true,
        online: condition === "online",
        last_seen: lastSeen,
        load,
        quality,
        users,
      },
    ];
  }, [apId, type, latitude, longitude, status]);

  return (
    <section class="card" aria-labelledby="position-title">
      <h2 id="position-title">Position</h2>
      {latitude === undefined || longitude === undefined ? (
        <p class="soft">No position yet. An administrator can add a geolocation to the configuration.</p>
      ) : (
        <>
          <div class="position-map">
            <NetworkMap points={points} selected={apId} onOpen={() => {}} />
          </div>
          <p class="coordinates">
            {degreesText(latitude, "N", "S")}, {degreesText(longitude, "E", "W")}
          </p>
        </>
      )}
    </section>
  );
}

/** Five digits are precise to about one metre. */
const DIGITS = 5;

const degreesText = (degrees: number, positive: string, negative: string): string =>
  `${Number(Math.abs(degrees).toFixed(DIGITS))}° ${degrees < 0 ? negative : positive}`;
