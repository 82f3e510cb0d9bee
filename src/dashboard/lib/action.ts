import { useRef, useState } from "preact/hooks";

/** Something that a person sets off: whether it is under way, and why it went wrong. */
export interface Action<A extends unknown[]> {
  run(...args: A): Promise<void>;
  isBusy: boolean;
  error: Error | undefined;
}

/** Runs one at a time: a second press of the button is not a second order. */
export function useAction<A extends unknown[]>(work: (...args: A) => Promise<void>): Action<A> {
  const [state, setState] = useState<{ isBusy: boolean; error: Error | undefined }>({
    isBusy: false,
    error: undefined,
  });
  const isRunning = useRef(false);
  const run = async (...args: A): Promise<void> => {
    // Not by the state: that is of the last drawing, which two presses may have seen.
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
