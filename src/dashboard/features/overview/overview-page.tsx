import { useMemo } from "preact/hooks";
import type { AccessPointState, Overview as OverviewData } from "../../../schemas/overview.ts";
import { overview } from "../../api/operations.ts";
import { href, navigate, type PageProps, replaceRoute } from "../../app/router.ts";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { usePoll } from "../../lib/poll.ts";
import { NetworkMap } from "../../map/network-map.tsx";
import { AccessPointTable } from "./access-point-table.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { countsOf, type Filters, filtered, filtersIn, queryOf } from "./filters.ts";
import { highestLoad, lowestQuality, Ranking } from "./ranking.tsx";
import "../../style/overview.css";

/** Polls a large network less often: the response is larger, and drawing it takes longer. */
const LARGE_NETWORK = 1_000;
const pollIntervalMs = (data: OverviewData | undefined): number =>
  data !== undefined && data.access_points.length > LARGE_NETWORK ? 15_000 : 5_000;

const NONE: readonly AccessPointState[] = [];
const showFilters = (filters: Filters) => replaceRoute([], queryOf(filters));
const openAccessPoint = (apId: string) => navigate(["access-points", apId]);

/** The whole network at a glance. */
export function Overview({ route: { query } }: PageProps) {
  const { data, error, refresh } = usePoll(overview, pollIntervalMs);
  const all = data?.access_points;
  const filters = useMemo(() => filtersIn(query), [query]);
  const counts = useMemo(() => all && countsOf(all), [all]);
  const shown = useMemo(() => (all === undefined ? NONE : filtered(all, filters)), [all, filters]);
  const isNew = all?.length === 0;
  const failed = <Failed error={error} onRetry={refresh} />;

  return (
    <div class="stack overview">
      <h1 class="hidden-text">Overview</h1>
      {isNew && failed}
      {isNew ? <NoAccessPoints /> : <FilterBar counts={counts} filters={filters} onFilters={showFilters} />}
      {!isNew && (
        <>
          <div class="overview-top">
            <div class="overview-map">
              <NetworkMap points={shown} onOpen={openAccessPoint} />
              {failed}
              <WithoutLocation accessPoints={shown} />
            </div>
            <div class="overview-rankings">
              <Ranking title="Highest load" ranked={highestLoad(shown)} isLoading={all === undefined} />
              <Ranking title="Lowest quality" ranked={lowestQuality(shown)} isLoading={all === undefined} />
            </div>
          </div>
          <section class="card">
            <h2>
              Access points{" "}
              {counts !== undefined && shown.length < counts.all && (
                <small class="soft">
                  {shown.length.toLocaleString("en")} of {counts.all.toLocaleString("en")}
                </small>
              )}
            </h2>
            {all === undefined ? (
              <Loading lines={8} />
            ) : shown.length === 0 ? (
              <NoMatches />
            ) : (
              <AccessPointTable accessPoints={shown} />
            )}
          </section>
        </>
      )}
    </div>
  );
}

/** Explains why some access points are missing on the map. */
function WithoutLocation({ accessPoints }: { accessPoints: readonly AccessPointState[] }) {
  const count = accessPoints.filter(({ latitude, longitude }) => latitude === null || longitude === null).length;
  if (count === 0) return null;
  return (
    <p class="hint">
      {count === 1
        ? "1 access point has no location. Only the table shows it."
        : `${count.toLocaleString("en")} access points have no location. Only the table shows them.`}
    </p>
  );
}

function NoMatches() {
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

function NoAccessPoints() {
  return (
    <div class="card">
      <Empty title="No access points yet">
        <p>
          <a class="button primary" href={href(["emulator"])}>
            Start emulated access points
          </a>
        </p>
        <p>
          Or connect a machine of your own with <code>npm run agent</code>: it reports its load and network counters as
          an access point.
        </p>
      </Empty>
    </div>
  );
}
