import { useMemo } from "preact/hooks";
import type { AccessPointState } from "../../../schemas/fleet/overview.ts";
import { navigate, type PageProps, replaceRoute } from "../../app/router.ts";
import { Failed, Loading } from "../../components/states.tsx";
import { NetworkMap } from "../../map/network-map.tsx";
import { useOwnGrants } from "../../selectors/own-grants.ts";
import { SelectorBar } from "../../selectors/selector-bar.tsx";
import { siteIn, siteTerm, withoutKey, withTerm } from "../../selectors/selector-text.ts";
import { LabelTools } from "../labelling/label-tools.tsx";
import { AccessPointTable } from "./access-point-table.tsx";
import { NoAccessPoints, NoMatches, OnlyOwn } from "./empty-states.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { countsOf, type Filters, filtered, filtersIn, queryOf } from "./filters.ts";
import { LazyCharts } from "./lazy-charts.tsx";
import { highestLoad, lowestQuality, Ranking } from "./ranking.tsx";
import { siteTreeOf } from "./site-tree.ts";
import { SiteTreeCard } from "./site-tree-card.tsx";
import { useOverview, useTreeAccessPoints } from "./use-overview.ts";
import "../../style/overview.css";

const NONE: readonly AccessPointState[] = [];
const showFilters = (filters: Filters) => replaceRoute([], queryOf(filters));
const openAccessPoint = (apId: string) => navigate(["access-points", apId]);

/** The whole network, or a part of it, at a glance. */
export function Overview({ route: { query } }: PageProps) {
  const filters = useMemo(() => filtersIn(query), [query]);
  const { selector } = filters;
  const { shown: loaded, selectorError, error, refresh } = useOverview(selector);
  const grants = useOwnGrants();
  const all = loaded?.accessPoints;
  const counts = useMemo(() => all && countsOf(all), [all]);
  const shown = useMemo(() => (all === undefined ? NONE : filtered(all, filters)), [all, filters]);
  const failed = <Failed error={error} onRetry={refresh} />;
  // A new entry in the browser's history, unlike the other filters: the back button returns to the previous selection.
  const showSelector = (changed: string) => navigate([], queryOf({ ...filters, selector: changed }));

  if (loaded?.selector === "" && selector === "" && all?.length === 0)
    return (
      <div class="stack overview">
        <h1 class="hidden-text">Overview</h1>
        {failed}
        <NoAccessPoints grants={grants} />
      </div>
    );
  return (
    <div class="stack overview">
      <h1 class="hidden-text">Overview</h1>
      <SelectorBar selector={selector} error={selectorError} onSelector={showSelector} />
      <FilterBar counts={counts} filters={filters} onFilters={showFilters} />
      <div class="overview-top">
        <div class="overview-map">
          <NetworkMap points={shown} view={loaded?.selector ?? ""} onOpen={openAccessPoint} />
          {failed}
          <LastSeenUnknown accessPoints={shown} />
          <WithoutLocation accessPoints={shown} />
        </div>
        <div class="overview-rankings">
          <Ranking title="Highest load" ranked={highestLoad(shown)} isLoading={all === undefined} />
          <Ranking title="Lowest quality" ranked={lowestQuality(shown)} isLoading={all === undefined} />
        </div>
      </div>
      <div class="overview-sites">
        <Sites selector={selector} loaded={loaded} onSelector={showSelector} />
        <LazyCharts selector={selector} isReady={loaded !== undefined} />
      </div>
      <section class="card" aria-busy={loaded?.selector !== selector}>
        <div class="spread">
          <h2>
            Access points{" "}
            {counts !== undefined && shown.length < counts.all && (
              <small class="soft">
                {shown.length.toLocaleString("en")} of {counts.all.toLocaleString("en")}
              </small>
            )}
          </h2>
          <LabelTools selector={selector} onChanged={refresh} />
        </div>
        <OnlyOwn grants={grants} />
        {all === undefined ? (
          <Loading lines={8} />
        ) : shown.length === 0 ? (
          <NoMatches />
        ) : (
          <AccessPointTable accessPoints={shown} />
        )}
      </section>
    </div>
  );
}

/** Shows the tree of sites, if there are any. */
function Sites({
  selector,
  loaded,
  onSelector,
}: {
  selector: string;
  loaded: ReturnType<typeof useOverview>["shown"];
  onSelector(selector: string): void;
}) {
  const accessPoints = useTreeAccessPoints(selector, loaded);
  const tree = useMemo(() => accessPoints && siteTreeOf(accessPoints), [accessPoints]);
  if (tree === undefined || tree.sites.length === 0) return null;
  const others = withoutKey(selector, "site");
  return (
    <SiteTreeCard
      tree={tree}
      chosen={siteIn(selector)}
      onChoose={(path) =>
        onSelector(path === undefined ? others : withTerm(others, path === null ? "!site" : siteTerm(path)))
      }
    />
  );
}

/** Says what is missing during an outage of the telemetry store, or of a part of it. */
function LastSeenUnknown({ accessPoints }: { accessPoints: readonly AccessPointState[] }) {
  const count = accessPoints.filter(({ last_seen_unknown }) => last_seen_unknown).length;
  if (count === 0) return null;
  return (
    <p class="hint" role="status">
      A part of the telemetry store does not respond. For {count.toLocaleString("en")} access point
      {count === 1 ? "" : "s"} it is not known when they last reported.
    </p>
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
