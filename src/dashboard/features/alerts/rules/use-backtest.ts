import { useEffect, useState } from "preact/hooks";
import type { Backtest } from "../../../../schemas/alerts/backtest.ts";
import { type NewRuleSpec, testRule } from "../../../api/alert-calls.ts";
import { serviceNowMs } from "../../../api/clock.ts";

/** People pause this long when they stop typing. */
const DELAY_MS = 500;
const MAX_ALERTS = 10_000;

export interface BacktestState {
  /** The latest result. It stays while the next one is computed. */
  result: Backtest | undefined;
  error: Error | undefined;
  isBusy: boolean;
  /** Tests the same rule again. */
  retry(): void;
}

const NONE: Omit<BacktestState, "retry"> = { result: undefined, error: undefined, isBusy: false };

/** Tests a rule on the past whenever it changes. Undefined: the rule is not complete. */
export function useBacktest(spec: NewRuleSpec | undefined, windowMs: number): BacktestState {
  const [state, setState] = useState(NONE);
  const [attempt, setAttempt] = useState(0);
  // Only these parts decide when an alert fires.
  const key = spec && JSON.stringify([spec.selector, spec.condition, spec.for_s, spec.clear, spec.group]);
  useEffect(() => {
    if (spec === undefined) return;
    const ending = new AbortController();
    setState(({ result }) => ({ result, error: undefined, isBusy: true }));
    const timer = setTimeout(() => {
      const nowMs = serviceNowMs();
      const period = { from: new Date(nowMs - windowMs).toISOString(), to: new Date(nowMs).toISOString() };
      testRule({ rule: spec, ...period, limit: MAX_ALERTS }, ending.signal).then(
        (result) => ending.signal.aborted || setState({ result, error: undefined, isBusy: false }),
        (error: Error) => ending.signal.aborted || setState(({ result }) => ({ result, error, isBusy: false })),
      );
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [key, windowMs, attempt]);
  return { ...state, retry: () => setAttempt(attempt + 1) };
}
