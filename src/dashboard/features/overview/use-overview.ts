import { useRef } from "preact/hooks";
import type { AccessPointState } from "../../../schemas/overview.ts";
import { ApiError } from "../../api/call.ts";
import { overview } from "../../api/operations.ts";
import { fieldErrorOf } from "../../components/form.tsx";
import { usePoll } from "../../lib/poll.ts";
import { withoutKey } from "../../selectors/selector-text.ts";

/** Polls a large network less often: the response is larger, and drawing it takes longer. */
const LARGE_NETWORK = 1_000;
const INTERVAL_MS = 5_000;
const LARGE_INTERVAL_MS = 15_000;
/** How much less often the tree of sites is requested, if it needs a request of its own. */
const TREE_FACTOR = 3;

const intervalMs = (accessPoints: readonly AccessPointState[] | undefined): number =>
  accessPoints !== undefined && accessPoints.length > LARGE_NETWORK ? LARGE_INTERVAL_MS : INTERVAL_MS;

export interface SelectedAccessPoints {
  /** The selector of these access points. It differs from the current one until the first response. */
  selector: string;
  accessPoints: readonly AccessPointState[];
}

/** Polls the access points of a selector. Keeps those of the previous selector until the first response. */
export function useOverview(selector: string) {
  const last = useRef<SelectedAccessPoints>(undefined);
  const { data, error, refresh } = usePoll(
    async (signal): Promise<SelectedAccessPoints> => ({
      selector,
      accessPoints: (await overview(selector, signal)).access_points,
    }),
    (latest) => intervalMs(latest?.accessPoints),
    [selector],
  );
  if (data !== undefined) last.current = data;
  const isRejected = error instanceof ApiError && error.status === 422;
  return {
    shown: last.current,
    /** The service's error about the selector, such as an unknown group. */
    selectorError: isRejected ? (fieldErrorOf(error, "selector") ?? error.message) : undefined,
    error: isRejected ? undefined : error,
    refresh,
  };
}

/** Returns the access points for the tree of sites: those of the selector without its condition on the site. */
export function useTreeAccessPoints(
  selector: string,
  shown: SelectedAccessPoints | undefined,
): readonly AccessPointState[] | undefined {
  const base = withoutKey(selector, "site");
  const hasSite = base !== selector;
  const last = useRef<readonly AccessPointState[]>(undefined);
  const { data } = usePoll(
    async (signal) => (hasSite ? (await overview(base, signal)).access_points : undefined),
    (latest) => TREE_FACTOR * intervalMs(latest),
    [base, hasSite],
  );
  if (!hasSite && shown?.selector === selector) last.current = shown.accessPoints;
  if (hasSite && data !== undefined) last.current = data;
  return last.current;
}
