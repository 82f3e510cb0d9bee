import { useRef } from "preact/hooks";
import { serviceNowMs } from "../api/clock.ts";
import { series } from "../api/operations.ts";
import { saveFile } from "../lib/browser.ts";
import { csvField } from "../lib/format.ts";
import { usePoll } from "../lib/poll.ts";
import { SeriesStore } from "./series-store.ts";
import type { ChartWindow } from "./windows.ts";

export interface LiveSeries {
  store: SeriesStore;
  /** Whether the first response has arrived. */
  isLoaded: boolean;
  /** The end of the charts: now, or the time of the pause. */
  untilMs: number;
  error: Error | undefined;
}

interface Cached {
  /** The access point and the window that the store is for. */
  key: string;
  store: SeriesStore;
  /** The metrics in the store, and when all their points were last loaded. */
  metrics: string;
  loadedAtMs: number;
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
    cached.current = { key, store: new SeriesStore(), metrics: "", loadedAtMs: Number.NEGATIVE_INFINITY };
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
      const { series: received } = await series({ ...request, since: new Date(sinceMs).toISOString() }, signal);
      // After a long sleep there may be too many points. The service then sends means, which cannot be appended to points.
      const hasMeans = received.some(({ bucket_ms }) => bucket_ms !== undefined);
      if (!hasMeans) {
        current.store.append(received, sinceMs);
        current.store.trim(nowMs - window.ms);
        return;
      }
    }
    const { series: received } = await series(request, signal);
    current.store.replace(received);
    current.metrics = wanted;
    current.loadedAtMs = nowMs;
  };
  const { error } = usePoll(update, window.intervalMs, [key, wanted, isPaused]);

  return { store: current.store, isLoaded: current.metrics !== "", untilMs: untilMs.current, error };
}

/** Downloads metrics as CSV, with one line for each point: metrics need not share their times. */
export function saveSeries(name: string, store: SeriesStore, metrics: readonly string[]): void {
  const lines = ["time,metric,value\r\n"];
  for (const metric of metrics) {
    const { times, values } = store.series(metric);
    times.forEach((timeMs, i) => {
      lines.push(`${new Date(timeMs).toISOString()},${csvField(metric)},${csvField(values[i])}\r\n`);
    });
  }
  saveFile(`${name}.csv`, "text/csv", lines);
}
