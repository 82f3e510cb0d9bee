import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { listAlerts, listEvents } from "../api/alert-calls.ts";
import { ApiError } from "../api/call.ts";
import { usePoll } from "../lib/poll.ts";

/** The number of alerts that fire now, next to the link to their page. */

const TYPES = ["alert.fired", "alert.resolved", "alert.acknowledged"] as const;
/** A request waits at the service until an alert changes. */
const WAIT_S = 25;
/** Between two requests: a storm of alerts does not cause more requests. */
const PAUSE_MS = 2_000;
/** Silenced alerts cause no events. */
const MAX_AGE_MS = 60_000;
const MAX_COUNT = 1_000;

/** Grows when alerts may have changed. Pages with alerts load them again. */
export const alertChanges = signal(0);

interface Count {
  firing: number;
  atMs: number;
  /** The event up to which it is correct. */
  upTo: number;
}

/** Returns the number of firing alerts: waits for an event about an alert, then counts again. There is one request at a time. */
function useFiringCount(): number | undefined {
  const last = useRef<Count>(undefined);
  const { data } = usePoll(async (abort) => {
    const upTo = await nextEvent(last.current, abort);
    if (upTo !== undefined) {
      const alerts = await listAlerts({ state: "firing", limit: MAX_COUNT }, abort);
      last.current = { firing: alerts.filter(({ silenced }) => !silenced).length, atMs: Date.now(), upTo };
      alertChanges.value += 1;
    }
    return last.current?.firing;
  }, PAUSE_MS);
  return data;
}

/** Waits for events about alerts. Returns the id up to which a new count is correct, or undefined if the last one still is. */
async function nextEvent(last: Count | undefined, abort: AbortSignal): Promise<number | undefined> {
  const request = { types: TYPES, limit: 1_000 };
  if (last === undefined) return (await listEvents({ ...request, waitS: 0 }, abort)).next_after;
  try {
    const { events, next_after } = await listEvents({ ...request, after: last.upTo, waitS: WAIT_S }, abort);
    const isOld = Date.now() - last.atMs > MAX_AGE_MS;
    if (events.length > 0 || isOld) return next_after;
    last.upTo = next_after;
    return undefined;
  } catch (error) {
    // The id is unknown after the database was replaced by a backup.
    if (error instanceof ApiError && error.status === 422) return await nextEvent(undefined, abort);
    throw error;
  }
}

/** Shows the number of alerts, or nothing if there are none. */
export function FiringCount() {
  const count = useFiringCount() ?? 0;
  return (
    <span class="firing" aria-live="polite">
      {count > 0 && (
        <>
          {count >= MAX_COUNT ? `${MAX_COUNT - 1}+` : count}
          <span class="hidden-text"> firing</span>
        </>
      )}
    </span>
  );
}
