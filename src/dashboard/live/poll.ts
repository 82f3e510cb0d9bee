import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/** What was last heard, and what went wrong since. */
export interface Polled<T> {
  data: T | undefined;
  error: Error | undefined;
  /** Asks at once. */
  refresh(): void;
}

const LONGEST_PAUSE_MS = 10_000;

/**
 * Asks again and again while somebody looks: at once, then so long after each answer. After a failure it keeps what it has and
 * tries again, less and less often. Asks anew when `about` changes. How often may depend on what was heard.
 */
export function usePoll<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  everyMs: number | ((data: T | undefined) => number),
  about: readonly unknown[] = [],
): Polled<T> {
  const [answer, setAnswer] = useState<{ data: T | undefined; error: Error | undefined }>(NOTHING);
  const latestAsk = useRef(ask);
  latestAsk.current = ask;
  const refresh = useRef(() => {});

  // What it depends on is the caller's to say.
  useEffect(() => {
    const ending = new AbortController();
    let waiting: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    let failures = 0;
    let heard: T | undefined;
    const look = async () => {
      clearTimeout(waiting);
      if (isAsking || ending.signal.aborted) return;
      // A hidden page asks nothing; it is woken when it shows again.
      if (document.hidden) return;
      isAsking = true;
      try {
        const data = await latestAsk.current(ending.signal);
        failures = 0;
        heard = data;
        if (!ending.signal.aborted) setAnswer({ data, error: undefined });
      } catch (error) {
        failures += 1;
        if (!ending.signal.aborted) setAnswer(({ data }) => ({ data, error: error as Error }));
      } finally {
        isAsking = false;
      }
      if (ending.signal.aborted) return;
      const usualMs = typeof everyMs === "number" ? everyMs : everyMs(heard);
      const pauseMs =
        failures === 0 ? usualMs : Math.min(LONGEST_PAUSE_MS, Math.max(1_000, usualMs) * 2 ** (failures - 1));
      waiting = setTimeout(() => void look(), pauseMs);
    };
    const wake = () => void look();
    refresh.current = wake;
    document.addEventListener("visibilitychange", wake);
    addEventListener("online", wake);
    setAnswer(NOTHING);
    wake();
    return () => {
      ending.abort();
      clearTimeout(waiting);
      document.removeEventListener("visibilitychange", wake);
      removeEventListener("online", wake);
    };
  }, about);

  const refreshNow = useCallback(() => refresh.current(), []);
  return { ...answer, refresh: refreshNow };
}

const NOTHING = { data: undefined, error: undefined };
