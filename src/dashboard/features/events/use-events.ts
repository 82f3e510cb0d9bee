import { useRef } from "preact/hooks";
import type { NetworkEvent } from "../../../schemas/events.ts";
import { listEvents } from "../../api/alert-calls.ts";
import { ApiError } from "../../api/call.ts";
import { usePoll } from "../../lib/poll.ts";

const SHOWN = 20;
/** A request waits at the service until there is an event. */
const WAIT_S = 25;
const PAUSE_MS = 1_000;

/** Returns the last events of an access point, the newest first, and keeps them up to date. */
export function useEvents(apId: string): { events: readonly NetworkEvent[] | undefined; error: Error | undefined } {
  const known = useRef<{ events: readonly NetworkEvent[]; after: number }>(undefined);
  const { data, error } = usePoll(
    async (signal) => {
      const current = known.current;
      try {
        const { events, next_after } = await listEvents(
          current === undefined
            ? { agent: apId, newest: true, limit: SHOWN }
            : { agent: apId, after: current.after, waitS: WAIT_S },
          signal,
        );
        const shown = [...events.toReversed(), ...(current?.events ?? [])].slice(0, SHOWN);
        known.current = {
          events: events.length === 0 && current !== undefined ? current.events : shown,
          after: next_after,
        };
      } catch (cause) {
        // The id is unknown after the database was replaced by a backup. The next request starts anew.
        if (cause instanceof ApiError && cause.status === 422) known.current = undefined;
        throw cause;
      }
      return known.current.events;
    },
    PAUSE_MS,
    [apId],
  );
  return { events: data, error };
}
