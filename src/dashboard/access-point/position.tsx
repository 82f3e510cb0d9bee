/** Where it stands. */
export interface Position {
  latitude: number;
  longitude: number;
}

/** The service sees to it that a geolocation, where there is one, has this form. */
export function positionOf({ geolocation }: Record<string, unknown>): Position | undefined {
  const { latitude, longitude } = (geolocation ?? {}) as Partial<Record<keyof Position, unknown>>;
  return typeof latitude === "number" && typeof longitude === "number" ? { latitude, longitude } : undefined;
}

export function PositionOf({ position }: { position: Position | undefined }) {
  return (
    <section class="card" aria-labelledby="position-title">
      <h2 id="position-title">Position</h2>
      {position === undefined ? (
        <p class="soft">Its configuration has no geolocation.</p>
      ) : (
        <p class="coordinates">
          {degreesText(position.latitude, "N", "S")}, {degreesText(position.longitude, "E", "W")}
        </p>
      )}
    </section>
  );
}

/** To a metre. */
const DIGITS = 5;

const degreesText = (degrees: number, positive: string, negative: string): string =>
  `${Number(Math.abs(degrees).toFixed(DIGITS))}° ${degrees < 0 ? negative : positive}`;
