import { useMemo } from "preact/hooks";
import type { AccessPointState } from "../../../schemas/overview.ts";
import { NetworkMap } from "../../map/network-map.tsx";
import type { Vitals } from "./vitals.ts";

interface PositionProps {
  apId: string;
  type: string | null;
  /** Of its configuration. */
  geolocation: unknown;
  vitals: Vitals | undefined;
}

/** Where it stands. */
export function Position({ apId, type, geolocation, vitals }: PositionProps) {
  // The service sees to it that a geolocation, where there is one, has this form.
  const { latitude, longitude } = (geolocation ?? {}) as { latitude?: number; longitude?: number };
  const points = useMemo((): AccessPointState[] => {
    if (latitude === undefined || longitude === undefined) return [];
    const { condition, lastSeen = null, load = null, quality = null, users = null } = vitals ?? {};
    return [
      {
        ...{ ap_id: apId, access_point_type: type, latitude, longitude, onboard: true, load, quality, users },
        online: condition === "online",
        last_seen: lastSeen,
      },
    ];
  }, [apId, type, latitude, longitude, vitals]);

  return (
    <section class="card" aria-labelledby="position-title">
      <h2 id="position-title">Position</h2>
      {latitude === undefined || longitude === undefined ? (
        <p class="soft">Its configuration has no geolocation.</p>
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

/** To a metre. */
const DIGITS = 5;

const degreesText = (degrees: number, positive: string, negative: string): string =>
  `${Number(Math.abs(degrees).toFixed(DIGITS))}° ${degrees < 0 ? negative : positive}`;
