import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/** What was asked for once, and again whenever somebody wants it. */
export interface Loaded<T> {
  data: T | undefined;
  error: Error | undefined;
  isBusy: boolean;
  /** Asks again; what is there stays until the answer comes. */
  refresh(): void;
}

/** For what changes rarely, or by the person's own hand: it does not ask again by itself, as `usePoll` does. */
export function useLoaded<T>(ask: (signal: AbortSignal) => Promise<T>, about: readonly unknown[] = []): Loaded<T> {
  const [answer, setAnswer] = useState<Omit<Loaded<T>, "refresh">>(NOTHING);
  const latestAsk = useRef(ask);
  latestAsk.current = ask;
  const ending = useRef<AbortController>(undefined);

  const refresh = useCallback(() => {
    // The newest question is the one to be answered.
    ending.current?.abort();
    ending.current = new AbortController();
    const { signal } = ending.current;
    setAnswer(({ data }) => ({ data, error: undefined, isBusy: true }));
    latestAsk.current(signal).then(
      (data) => signal.aborted || setAnswer({ data, error: undefined, isBusy: false }),
      (error) => signal.aborted || setAnswer(({ data }) => ({ data, error: error as Error, isBusy: false })),
    );
  }, []);

  // What it depends on is the caller's to say.
  useEffect(() => {
    setAnswer(NOTHING);
    refresh();
    return () => ending.current?.abort();
  }, about);

  return { ...answer, refresh };
}

const NOTHING = { data: undefined, error: undefined, isBusy: true };
