import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/** What was last heard, and what went wrong since. */
export interface Polled<T> {
  data: T | undefined;
  error: Error | undefined;
  /** Asks at once; where an answer is on its way, once more after it, since it may not know yet what is wanted. */
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
  const latestEveryMs = useRef(everyMs);
  latestEveryMs.current = everyMs;
  const refresh = useRef(() => {});

  // What it depends on is the caller's to say.
  useEffect(() => {
    const ending = new AbortController();
    let waiting: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    let isWantedAgain = false;
    let failures = 0;
    let heard: T | undefined;
    const look = async () => {
      clearTimeout(waiting);
      if (isAsking || ending.signal.aborted) return;
      // A hidden page asks nothing; it is woken when it shows again.
      if (document.hidden) return;
      isAsking = true;
      isWantedAgain = false;
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
      const every = latestEveryMs.current;
      const restMs = pauseMs(typeof every === "number" ? every : every(heard), failures);
      waiting = setTimeout(wake, isWantedAgain ? 0 : restMs);
    };
    const wake = () => void look();
    refresh.current = () => {
      isWantedAgain = isAsking;
      wake();
    };
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

const pauseMs = (everyMs: number, failures: number): number =>
  failures === 0 ? everyMs : Math.min(LONGEST_PAUSE_MS, Math.max(1_000, everyMs) * 2 ** (failures - 1));

const NOTHING = { data: undefined, error: undefined };
