import { useMemo } from "preact/hooks";
import type { AccessPointState, Overview as OverviewData } from "../../../schemas/overview.ts";
import { overview } from "../../api/operations.ts";
import { navigate, type PageProps, replaceRoute } from "../../app/router.ts";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { usePoll } from "../../lib/poll.ts";
import { NetworkMap } from "../../map/network-map.tsx";
import { AccessPointTable } from "./access-point-table.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { countsOf, type Filters, filtered, filtersIn, queryOf } from "./filters.ts";
import { NewNetwork } from "./new-network.tsx";
import { busiest, Ranking, worst } from "./ranking.tsx";
import "../../style/overview.css";

/** A large network is asked for less often: there is more to send, and more to draw. */
const LARGE_FROM = 1_000;
const everyMs = (data: OverviewData | undefined): number =>
  data !== undefined && data.access_points.length > LARGE_FROM ? 15_000 : 5_000;

const NONE: readonly AccessPointState[] = [];
const showFilters = (filters: Filters) => replaceRoute([], queryOf(filters));
const openAccessPoint = (apId: string) => navigate(["access-points", apId]);

/** The whole network at a glance. */
export function Overview({ route: { query } }: PageProps) {
  const { data, error, refresh } = usePoll(overview, everyMs);
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
      {isNew ? <NewNetwork /> : <FilterBar counts={counts} filters={filters} onFilters={showFilters} />}
      {!isNew && (
        <>
          <div class="overview-top">
            <div class="overview-map">
              <NetworkMap points={shown} onOpen={openAccessPoint} />
              {failed}
              <Placeless accessPoints={shown} />
            </div>
            <div class="overview-rankings">
              <Ranking title="Busiest" measure="by load" ranked={busiest(shown)} isLoading={all === undefined} />
              <Ranking title="Worst" measure="by quality" ranked={worst(shown)} isLoading={all === undefined} />
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
              <NoneLeft />
            ) : (
              <AccessPointTable accessPoints={shown} />
            )}
          </section>
        </>
      )}
    </div>
  );
}

/** The map cannot show those that do not say where they are. */
function Placeless({ accessPoints }: { accessPoints: readonly AccessPointState[] }) {
  const count = accessPoints.filter(({ latitude, longitude }) => latitude === null || longitude === null).length;
  if (count === 0) return null;
  return (
    <p class="hint">
      {count === 1
        ? "One access point does not say where it is, and is only in the table."
        : `${count.toLocaleString("en")} access points do not say where they are, and are only in the table.`}
    </p>
  );
}

function NoneLeft() {
  return (
    <Empty title="No access point is like that">
      <p>
        <button type="button" onClick={() => replaceRoute([])}>
          Show all
        </button>
      </p>
    </Empty>
  );
}
