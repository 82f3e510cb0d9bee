import { useRef } from "preact/hooks";
import { serviceNowMs } from "../api/clock.ts";
import { series } from "../api/operations.ts";
import { usePoll } from "../lib/poll.ts";
import { SeriesStore } from "./series-store.ts";
import type { ChartWindow } from "./windows.ts";

export interface LiveSeries {
  store: SeriesStore;
  /** Whether the service has answered at all. */
  isLoaded: boolean;
  /** Where the charts end: now, or when they were paused. */
  untilMs: number;
  error: Error | undefined;
}

interface Held {
  about: string;
  store: SeriesStore;
  /** Which metrics it has, and since when all of them. */
  metrics: string;
  wholeAtMs: number;
}

/** Keeps the series of an access point up to date, and draws the caller anew whenever something may have come. */
export function useLiveSeries(
  apId: string,
  metrics: readonly string[],
  window: ChartWindow,
  isPaused: boolean,
): LiveSeries {
  const about = `${apId} ${window.id}`;
  const wanted = metrics.join();
  const held = useRef<Held>(undefined);
  if (held.current?.about !== about) {
    held.current = { about, store: new SeriesStore(), metrics: "", wholeAtMs: Number.NEGATIVE_INFINITY };
  }
  const { current } = held;
  const untilMs = useRef(0);
  if (!isPaused || untilMs.current === 0) untilMs.current = serviceNowMs();

  const update = async (signal: AbortSignal): Promise<void> => {
    if (metrics.length === 0) return;
    // What is paused stays as it is, but for metrics that were not there yet.
    if (isPaused && current.metrics === wanted) return;
    const nowMs = serviceNowMs();
    const isDue = current.metrics !== wanted || nowMs - current.wholeAtMs >= window.wholeEveryMs;
    const sinceMs = isDue ? undefined : current.store.sinceMs(nowMs);
    const request = { agent: apId, metrics, window: window.id };
    if (sinceMs !== undefined) {
      const { series: sent } = await series({ ...request, since: new Date(sinceMs).toISOString() }, signal);
      // More has come than fits: after a long sleep, for example. Then there are means of another kind, which do not go together.
      const isMuch = sent.some(({ bucket_ms }) => bucket_ms !== undefined);
      if (!isMuch) {
        current.store.append(sent, sinceMs);
        current.store.trim(nowMs - window.ms);
        return;
      }
    }
    const { series: sent } = await series(request, signal);
    current.store.replace(sent);
    current.metrics = wanted;
    current.wholeAtMs = nowMs;
  };
  const { error } = usePoll(update, window.everyMs, [about, wanted, isPaused]);

  return { store: current.store, isLoaded: current.metrics !== "", untilMs: untilMs.current, error };
}
