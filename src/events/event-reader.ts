import type { Actor } from "../auth/identity.ts";
import { authorize, canSeeAllEvents, visibleAgents } from "../auth/permissions.ts";
import { Invalid } from "../lib/errors.ts";
import type { Selector } from "../lib/selectors.ts";
import { EVENT_LIMITS, type EventPage, type EventType, type Severity } from "../schemas/events.ts";
import { type EventLog, type EventRow, toNetworkEvent } from "./event-log.ts";
import { EventSocket } from "./event-socket.ts";
import type { NewestEvent } from "./newest-event.ts";
import { ReaderSlots } from "./reader-slots.ts";
import { type EventViewer, isSelected, isVisible } from "./visibility.ts";

/** Returns the caller as it is now. Throws if its token is not valid any more. */
export type CurrentActor = () => Promise<Actor>;

export interface EventQuery {
  /** Undefined: only events from now on. */
  after?: number | undefined;
  types?: readonly EventType[] | undefined;
  selector: Selector;
  /** Only events about this agent. */
  agent?: string | undefined;
  severity: Severity;
}

export interface EventListQuery extends EventQuery {
  limit: number;
  waitMs: number;
  /** Reads the last events, at once. */
  newest?: boolean | undefined;
}

/** Reads the event log on behalf of callers. */
export interface EventReader {
  /** Returns the next events that the caller sees. Waits up to `waitMs` if there is none, and then reads the caller's grants again. */
  list(actor: CurrentActor, query: EventListQuery): Promise<EventPage>;
  /** Returns the response that upgrades the request to a WebSocket. */
  open(actor: CurrentActor, query: EventQuery, offeredProtocols: string | null): Promise<Response>;
}

/** What one request reads at most: ids, and events that match the types and the severity. */
const SCANNED_IDS = 20_000;
const SCANNED_EVENTS = 1_000;
const MAX_PAGE_CHARACTERS = 1024 * 1024;
/** How often a waiting request reports that it is still there. */
const MAX_TICK_MS = 1_000;

export interface EventReaderOptions {
  eventLog: EventLog;
  newest: NewestEvent;
  now?: () => number;
}

export function createEventReader({ eventLog, newest, now = Date.now }: EventReaderOptions): EventReader {
  const slots = new ReaderSlots(EVENT_LIMITS.readersPerAccount, now);

  /** Returns the newest id. Throws `Invalid` if the cursor of the caller is later. */
  const newestIdFor = async (after: number | undefined): Promise<number> => {
    const newestId = await eventLog.newestId();
    // The cursor is of another database, such as one that was replaced by a backup. Without an error, the caller would wait for events that
    // it never gets.
    if (after !== undefined && after > newestId) {
      const msg = "Value error, there is no such event yet; start again without `after`";
      throw new Invalid([{ loc: ["after"], msg, type: "unknown_event" }], "query");
    }
    return newestId;
  };

  const read = async (
    viewer: EventViewer,
    { after, types, selector, agent, severity }: EventQuery & { after: number },
    limit: number,
    newestId: number,
  ): Promise<EventPage> => {
    const upTo = Math.min(after + SCANNED_IDS, newestId);
    // All events up to `newestId` exist when this query starts: a later transaction has a higher id.
    const rows = await eventLog.readAfter({ after, upTo, types, agent, severity, limit: SCANNED_EVENTS });
    const isIncluded = (row: EventRow) => isVisible(viewer, row) && isSelected(selector, row);
    const { page, scannedUpTo } = fill(rows, isIncluded, limit);
    const last = rows.length === SCANNED_EVENTS ? rows.at(-1)?.id : undefined;
    const next_after = Math.max(after, scannedUpTo ?? last ?? upTo);
    return { events: page.map(toNetworkEvent), next_after, has_more: next_after < newestId };
  };

  const readNewest = async (
    viewer: EventViewer,
    { types, selector, agent, severity }: EventQuery,
    limit: number,
  ): Promise<EventPage> => {
    const newestId = await eventLog.newestId();
    const rows = await eventLog.readNewest({ upTo: newestId, types, agent, severity, limit: SCANNED_EVENTS });
    const included = rows.filter((row) => isVisible(viewer, row) && isSelected(selector, row));
    // From the newest to older ones, as many as fit.
    const { page } = fill(included.toReversed(), () => true, limit);
    return { events: page.toReversed().map(toNetworkEvent), next_after: newestId, has_more: false };
  };

  return {
    async list(current, { limit, waitMs, after, newest: isNewest, ...query }) {
      const actor = await current();
      authorize(actor, "events.list");
      if (isNewest) return await readNewest(viewerOf(actor), query, limit);
      const newestId = await newestIdFor(after);
      let page = await read(viewerOf(actor), { ...query, after: after ?? newestId }, limit, newestId);
      if (waitMs === 0 || !isAtEnd(page)) return page;
      const deadlineMs = now() + waitMs;
      const slot = slots.take(actor.id);
      try {
        while (isAtEnd(page) && now() < deadlineMs) {
          const newId = await newest.waitAfter(page.next_after, Math.min(deadlineMs, now() + MAX_TICK_MS));
          slot.touch();
          if (newId === undefined) continue;
          // The grants may have changed while the request waited.
          page = await read(viewerOf(await current()), { ...query, after: page.next_after }, limit, newId);
        }
        return page;
      } finally {
        slot.release();
      }
    },

    async open(current, { after, ...query }, offeredProtocols) {
      const actor = await current();
      authorize(actor, "events.stream");
      const newestId = await newestIdFor(after);
      const socket = new EventSocket({
        start: after ?? newestId,
        newestId,
        expiresAtMs: actor.expiresAtMs,
        authorize: async () => viewerOf(await current()),
        read: (viewer, from, limit, upTo) => read(viewer, { ...query, after: from }, limit, upTo),
        newest,
        slot: slots.take(actor.id),
        now,
      });
      return socket.open(offeredProtocols);
    },
  };
}

/** Whether a page is empty, and there are no more events to look at. */
const isAtEnd = ({ events, has_more }: EventPage): boolean => events.length === 0 && !has_more;

const viewerOf = (actor: Actor): EventViewer => ({
  seesAll: canSeeAllEvents(actor),
  id: actor.id,
  scope: visibleAgents(actor),
});

/**
 * Takes the events of a page. `scannedUpTo` is the id of the last event that was looked at, if the page is full before the end of the rows.
 */
function fill(
  rows: readonly EventRow[],
  isIncluded: (row: EventRow) => boolean,
  limit: number,
): { page: EventRow[]; scannedUpTo: number | undefined } {
  const page: EventRow[] = [];
  let characters = 0;
  for (const [i, row] of rows.entries()) {
    if (!isIncluded(row)) continue;
    page.push(row);
    characters += JSON.stringify(row.data).length + JSON.stringify(row.labels).length;
    const isFull = page.length >= limit || characters >= MAX_PAGE_CHARACTERS;
    if (isFull && i < rows.length - 1) return { page, scannedUpTo: row.id };
  }
  return { page, scannedUpTo: undefined };
}
