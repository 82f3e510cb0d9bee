import { sleep } from "../lib/deadline.ts";
import type { EventLog } from "./event-log.ts";

/** Waits for new events. All readers of an isolate share one query in about a second. */
export interface NewestEvent {
  /** Waits until there is an event after an id, and returns the newest id. Returns undefined at the deadline. Throws `Unavailable`. */
  waitAfter(id: number, deadlineMs: number): Promise<number | undefined>;
}

const QUERY_INTERVAL_MS = 1_000;
const POLL_MS = 100;

export function createNewestEvent(eventLog: Pick<EventLog, "newestId">, now: () => number = Date.now): NewestEvent {
  let newestId = 0;
  let queriedMs = Number.NEGATIVE_INFINITY;

  const queryIfDue = async (): Promise<void> => {
    if (now() - queriedMs < QUERY_INTERVAL_MS) return;
    // Before the query, so that the others do not send it as well. They read its result, but do not wait for its promise: the platform
    // cancels it with the request that started it.
    queriedMs = now();
    newestId = Math.max(newestId, await eventLog.newestId());
  };

  return {
    async waitAfter(id, deadlineMs) {
      for (;;) {
        await queryIfDue();
        if (newestId > id) return newestId;
        const leftMs = deadlineMs - now();
        if (leftMs <= 0) return undefined;
        await sleep(Math.min(POLL_MS, leftMs));
      }
    },
  };
}
