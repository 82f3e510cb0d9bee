import type { AccessPointState } from "../../schemas/overview.ts";
import { Bar } from "../parts/bar.tsx";
import { percentText } from "../parts/percent.ts";
import { Loading } from "../parts/states.tsx";
import { href } from "../router.ts";

export interface Ranked {
  apId: string;
  share: number;
}

const PLACES = 5;

/** Of those that are online: whoever is away is neither busy nor bad, but gone. */
export function busiest(accessPoints: readonly AccessPointState[]): Ranked[] {
  const ranked = accessPoints.flatMap(({ ap_id: apId, online, load }) =>
    online && load !== null ? [{ apId, share: load }] : [],
  );
  return ranked.sort((one, other) => other.share - one.share).slice(0, PLACES);
}

export function worst(accessPoints: readonly AccessPointState[]): Ranked[] {
  const ranked = accessPoints.flatMap(({ ap_id: apId, online, quality }) =>
    online && quality !== null ? [{ apId, share: quality }] : [],
  );
  return ranked.sort((one, other) => one.share - other.share).slice(0, PLACES);
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
