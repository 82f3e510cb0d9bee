import { useRef } from "preact/hooks";
import { serviceNowMs } from "../api/clock.ts";
import { series } from "../api/operations.ts";
import { usePoll } from "../lib/poll.ts";
import { SeriesStore } from "./series-store.ts";
import type { ChartWindow } from "./windows.ts";

export interface LiveSeries {
  store: SeriesStore;
  /** Whether the first response has arrived. */
  isLoaded: boolean;
  /** The end of the charts: now, or the time of the pause. */
  untilMs: number;
  /** While the service cannot read its store: points before this time are missing. */
  missingBeforeMs: number | undefined;
  error: Error | undefined;
}

interface Cached {
  /** The access point and the window that the store is for. */
  key: string;
  store: SeriesStore;
  /** The metrics in the store, and when all their points were last loaded. */
  metrics: string;
  loadedAtMs: number;
  missingBeforeMs: number | undefined;
}

/** Keeps the series of an access point up to date, and renders the component whenever there may be new points. */
export function useLiveSeries(
  apId: string,
  metrics: readonly string[],
  window: ChartWindow,
  isPaused: boolean,
): LiveSeries {
  const key = `${apId} ${window.id}`;
  const wanted = metrics.join();
  const cached = useRef<Cached>(undefined);
  if (cached.current?.key !== key) {
    cached.current = {
      key,
      store: new SeriesStore(),
      metrics: "",
      loadedAtMs: Number.NEGATIVE_INFINITY,
      missingBeforeMs: undefined,
    };
  }
  const { current } = cached;
  const untilMs = useRef(0);
  if (!isPaused || untilMs.current === 0) untilMs.current = serviceNowMs();

  const update = async (signal: AbortSignal): Promise<void> => {
    if (metrics.length === 0) return;
    // During a pause only newly chosen metrics are loaded.
    if (isPaused && current.metrics === wanted) return;
    const nowMs = serviceNowMs();
    const mustReload = current.metrics !== wanted || nowMs - current.loadedAtMs >= window.reloadIntervalMs;
    const sinceMs = mustReload ? undefined : current.store.sinceMs(nowMs);
    const request = { agent: apId, metrics, window: window.id };
    if (sinceMs !== undefined) {
      const response = await series({ ...request, since: new Date(sinceMs).toISOString() }, signal);
      // After a long sleep there may be too many points. The service then sends means, which cannot be appended to points.
      const hasMeans = response.series.some(({ bucket_ms }) => bucket_ms !== undefined);
      if (!hasMeans) {
        current.store.append(response.series, sinceMs);
        current.store.trim(nowMs - window.ms);
        // When the service can read its store again, all points are loaded again.
        if (current.missingBeforeMs !== undefined && response.complete_from === undefined)
          current.loadedAtMs = Number.NEGATIVE_INFINITY;
        return;
      }
    }
    const { series: received, complete_from } = await series(request, signal);
    // The charts keep the points that they have while the service cannot read its store.
    if (complete_from !== undefined && current.metrics === wanted)
      current.store.append(received, Date.parse(complete_from) - 1);
    else current.store.replace(received);
    current.missingBeforeMs =
      complete_from === undefined || current.metrics === wanted ? undefined : Date.parse(complete_from);
    current.metrics = wanted;
    current.loadedAtMs = nowMs;
  };
  const { error } = usePoll(update, window.intervalMs, [key, wanted, isPaused]);

  return {
    store: current.store,
    isLoaded: current.metrics !== "",
    untilMs: untilMs.current,
    missingBeforeMs: current.missingBeforeMs,
    error,
  };
}
