import type { AccessPointState } from "../../../schemas/overview.ts";
import { href } from "../../app/router.ts";
import { Bar } from "../../components/badges.tsx";
import { Loading } from "../../components/states.tsx";
import { percentText } from "../../lib/format.ts";

export interface Ranked {
  apId: string;
  share: number;
}

const PLACES = 5;

/** Of those that are online: whoever is away is neither busy nor bad, but gone. */
export const busiest = (accessPoints: readonly AccessPointState[]): Ranked[] =>
  first(accessPoints, ({ online, load }) => (online ? load : null), -1);

export const worst = (accessPoints: readonly AccessPointState[]): Ranked[] =>
  first(accessPoints, ({ online, quality }) => (online ? quality : null), 1);

/** The few lowest (or with -1, highest) of many, without sorting them all. */
function first(
  accessPoints: readonly AccessPointState[],
  shareOf: (accessPoint: AccessPointState) => number | null,
  direction: 1 | -1,
): Ranked[] {
  const ranked: Ranked[] = [];
  for (const accessPoint of accessPoints) {
    const share = shareOf(accessPoint);
    if (share === null) continue;
    const place = ranked.findIndex((other) => (share - other.share) * direction < 0);
    if (place === -1 && ranked.length === PLACES) continue;
    ranked.splice(place === -1 ? ranked.length : place, 0, { apId: accessPoint.ap_id, share });
    ranked.length = Math.min(PLACES, ranked.length);
  }
  return ranked;
}

/** A few access points that need a look, each with a bar. */
export function Ranking({
  title,
  measure,
  ranked,
  isLoading,
}: {
  title: string;
  measure: string;
  ranked: readonly Ranked[];
  isLoading: boolean;
}) {
  return (
    <section class="card ranking">
      <h2>
        {title} <small class="soft">{measure}</small>
      </h2>
      {isLoading && <Loading />}
      {!isLoading && ranked.length === 0 && <p class="soft">Nothing was reported in the last five minutes.</p>}
      <ol>
        {ranked.map(({ apId, share }) => (
          <li key={apId}>
            <a href={href(["access-points", apId])}>{apId}</a>
            <span class="number">{percentText(share)}</span>
            <Bar share={share} />
          </li>
        ))}
      </ol>
    </section>
  );
}
