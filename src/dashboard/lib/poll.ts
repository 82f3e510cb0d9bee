import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/** The latest data, and the error of a later request that failed. */
export interface Polled<T> {
  data: T | undefined;
  error: Error | undefined;
  /**
   * Sends a request immediately. If one is in flight, sends another after it: the response may not include the change that made the
   * caller refresh.
   */
  refresh(): void;
}

const MAX_DELAY_MS = 10_000;

/**
 * Repeats a request while the page is visible: immediately, then `intervalMs` after each response. The interval may depend on the
 * latest data. After an error it keeps the data and backs off. Starts anew when `dependencies` change.
 */
export function usePoll<T>(
  load: (signal: AbortSignal) => Promise<T>,
  intervalMs: number | ((data: T | undefined) => number),
  dependencies: readonly unknown[] = [],
): Polled<T> {
  const [result, setResult] = useState<{ data: T | undefined; error: Error | undefined }>(NO_DATA);
  const latestLoad = useRef(load);
  latestLoad.current = load;
  const latestIntervalMs = useRef(intervalMs);
  latestIntervalMs.current = intervalMs;
  const refresh = useRef(() => {});

  useEffect(() => {
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isLoading = false;
    let mustRepeat = false;
    let failures = 0;
    let latest: T | undefined;
    const poll = async () => {
      clearTimeout(timer);
      if (isLoading || ending.signal.aborted) return;
      // A hidden page sends no requests; `visibilitychange` starts it again.
      if (document.hidden) return;
      isLoading = true;
      mustRepeat = false;
      try {
        const data = await latestLoad.current(ending.signal);
        failures = 0;
        latest = data;
        if (!ending.signal.aborted) setResult({ data, error: undefined });
      } catch (error) {
        failures += 1;
        if (!ending.signal.aborted) setResult(({ data }) => ({ data, error: error as Error }));
      } finally {
        isLoading = false;
      }
      if (ending.signal.aborted) return;
      const interval = latestIntervalMs.current;
      const waitMs = delayMs(typeof interval === "number" ? interval : interval(latest), failures);
      timer = setTimeout(start, mustRepeat ? 0 : waitMs);
    };
    const start = () => void poll();
    refresh.current = () => {
      mustRepeat = isLoading;
      start();
    };
    document.addEventListener("visibilitychange", start);
    addEventListener("online", start);
    setResult(NO_DATA);
    start();
    return () => {
      ending.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", start);
      removeEventListener("online", start);
    };
  }, dependencies);

  const refreshNow = useCallback(() => refresh.current(), []);
  return { ...result, refresh: refreshNow };
}

const delayMs = (intervalMs: number, failures: number): number =>
  failures === 0 ? intervalMs : Math.min(MAX_DELAY_MS, Math.max(1_000, intervalMs) * 2 ** (failures - 1));

const NO_DATA = { data: undefined, error: undefined };
