import { useRef, useState } from "preact/hooks";

/** An operation that the user starts, such as sending a form: whether it runs, and its latest error. */
export interface Action<A extends unknown[]> {
  run(...args: A): Promise<void>;
  isBusy: boolean;
  error: Error | undefined;
}

/** Returns an action that runs once at a time: a double click sends one request. */
export function useAction<A extends unknown[]>(work: (...args: A) => Promise<void>): Action<A> {
  const [state, setState] = useState<{ isBusy: boolean; error: Error | undefined }>({
    isBusy: false,
    error: undefined,
  });
  const isRunning = useRef(false);
  const run = async (...args: A): Promise<void> => {
    // `state` is too old for this check: two clicks may happen within one render.
    if (isRunning.current) return;
    isRunning.current = true;
    setState({ isBusy: true, error: undefined });
    try {
      await work(...args);
      setState({ isBusy: false, error: undefined });
    } catch (error) {
      setState({ isBusy: false, error: error as Error });
    } finally {
      isRunning.current = false;
    }
  };
  return { run, ...state };
}
