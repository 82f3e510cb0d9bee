import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/** The result of a request that runs once, and again on `refresh`. */
export interface Loaded<T> {
  data: T | undefined;
  error: Error | undefined;
  isBusy: boolean;
  /** Repeats the request. The present data stay until the response arrives. */
  refresh(): void;
}

/**
 * Loads data that change rarely, or only through this page. Unlike `usePoll` it does not repeat the request by itself. Loads anew
 * when `dependencies` change.
 */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  dependencies: readonly unknown[] = [],
): Loaded<T> {
  const [result, setResult] = useState<Omit<Loaded<T>, "refresh">>(LOADING);
  const latestLoad = useRef(load);
  latestLoad.current = load;
  const ending = useRef<AbortController>(undefined);

  const refresh = useCallback(() => {
    // Only the response of the latest request counts.
    ending.current?.abort();
    ending.current = new AbortController();
    const { signal } = ending.current;
    setResult(({ data }) => ({ data, error: undefined, isBusy: true }));
    latestLoad.current(signal).then(
      (data) => signal.aborted || setResult({ data, error: undefined, isBusy: false }),
      (error) => signal.aborted || setResult(({ data }) => ({ data, error: error as Error, isBusy: false })),
    );
  }, []);

  useEffect(() => {
    setResult(LOADING);
    refresh();
    return () => ending.current?.abort();
  }, dependencies);

  return { ...result, refresh };
}

const LOADING = { data: undefined, error: undefined, isBusy: true };
