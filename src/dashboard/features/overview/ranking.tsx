import type { AccessPointState } from "../../../schemas/fleet/overview.ts";
import { href } from "../../app/router.ts";
import { Bar } from "../../components/badges.tsx";
import { Loading } from "../../components/states.tsx";
import { percentText } from "../../lib/format.ts";

export interface Ranked {
  apId: string;
  share: number;
}

const MAX_RANKED = 5;

/** Ranks online access points only: the last values of an offline one are out of date. */
export const highestLoad = (accessPoints: readonly AccessPointState[]): Ranked[] =>
  first(accessPoints, ({ online, load }) => (online ? load : null), -1);

export const lowestQuality = (accessPoints: readonly AccessPointState[]): Ranked[] =>
  first(accessPoints, ({ online, quality }) => (online ? quality : null), 1);

/** Returns the few lowest (or with -1, highest) of many, without sorting all of them. */
function first(
  accessPoints: readonly AccessPointState[],
  shareOf: (accessPoint: AccessPointState) => number | null,
  direction: 1 | -1,
): Ranked[] {
  const ranked: Ranked[] = [];
  for (const accessPoint of accessPoints) {
    const share = shareOf(accessPoint);
    if (share === null) continue;
    const position = ranked.findIndex((other) => (share - other.share) * direction < 0);
    if (position === -1 && ranked.length === MAX_RANKED) continue;
    ranked.splice(position === -1 ? ranked.length : position, 0, { apId: accessPoint.ap_id, share });
    ranked.length = Math.min(MAX_RANKED, ranked.length);
  }
  return ranked;
}

/** Lists a few access points that may need attention, each with a bar. */
export function Ranking({
  title,
  ranked,
  isLoading,
}: {
  title: string;
  ranked: readonly Ranked[];
  isLoading: boolean;
}) {
  return (
    <section class="card ranking">
      <h2>{title}</h2>
      {isLoading && <Loading />}
      {!isLoading && ranked.length === 0 && <p class="soft">No recent reports from the access points shown.</p>}
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
