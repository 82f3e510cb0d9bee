import { createGroupStore } from "../accounts/group-store.ts";
import type { Encryptor } from "../auth/encryptor.ts";
import { createDeliveryStore, type DeliveryStore, type Progress } from "../events/delivery-store.ts";
import { createEventLog, type EventRow } from "../events/event-log.ts";
import { createEventViewers } from "../events/event-viewers.ts";
import { openSecrets } from "../events/subscription-secrets.ts";
import type { SubscriptionRow } from "../events/subscription-store.ts";
import type { EventViewer } from "../events/visibility.ts";
import { limitCalls } from "../lib/limit-calls.ts";
import { parseSelector } from "../lib/selectors.ts";
import type { TargetKind } from "../schemas/subscriptions.ts";
import { CallBatcher } from "../storage/call-batcher.ts";
import type { Database } from "../storage/libsql.ts";
import { type ReadEvents, type RunnerOptions, SubscriptionRunner } from "./subscription-runner.ts";
import type { Destination, Target } from "./targets/target.ts";

export interface DispatcherOptions {
  database: Database;
  encryptor: Encryptor;
  targets: Record<TargetKind, Target>;
  now?: () => number;
  random?: () => number;
  timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
/** Every change of a subscription adds to the audit trail. This covers changes by other means, such as a restored backup. */
const RELOAD_MS = 30_000;
/** Cursors that only skipped events are written together, and not at once: after a crash those events are skipped again. */
const SAVE_MS = 10_000;
const MAX_PAGES = 16;
const CONCURRENT_READS = 8;
const RECORDED_AT_ONCE = 200;
const RECORD_TIMEOUT_MS = 5_000;

/** Returns where and with which secrets to deliver. Throws if the key that encrypted the secrets is lost. */
export const destinationOf = async (encryptor: Encryptor, row: SubscriptionRow): Promise<Destination> => ({
  ...(await openSecrets(encryptor, row)),
  id: row.id,
  name: row.name,
  address: row.address,
});

/**
 * Delivers new events to all subscriptions. One query per poll finds out whether there is anything to do: it returns the newest ids of the
 * event log and of the audit trail, which grows with every change of subscriptions, accounts, grants and groups.
 */
export class EventDispatcher {
  readonly #store: DeliveryStore;
  readonly #runnerOptions: RunnerOptions;
  readonly #now: () => number;
  readonly #runners = new Map<string, SubscriptionRunner>();
  /** By the id of the owner. */
  readonly #viewers = new Map<string, { auditId: number; viewer: Promise<EventViewer | undefined> }>();
  #auditId = -1;
  #loadedAuditId = -1;
  #loadedMs = Number.NEGATIVE_INFINITY;
  #savedMs = Number.NEGATIVE_INFINITY;

  constructor({ database, encryptor, targets, now = Date.now, random = Math.random, timeoutMs }: DispatcherOptions) {
    this.#store = createDeliveryStore(database);
    this.#now = now;
    const groups = createGroupStore(database);
    const eventLog = createEventLog(database);
    // An event for all subscriptions must not overload the database, which all other requests use.
    const findViewer = limitCalls(CONCURRENT_READS, createEventViewers(database));
    const records = new CallBatcher<Progress, void>({
      component: "accounts database",
      call: async (attempts) => {
        await this.#store.record(attempts);
        return [];
      },
      maxHoldMs: 50,
      maxWeight: RECORDED_AT_ONCE,
      timeoutMs: RECORD_TIMEOUT_MS,
    });
    this.#runnerOptions = {
      store: this.#store,
      record: (progress) => records.add(progress, 1),
      read: sharedReader((after, upTo, limit) => eventLog.readAfter({ after, upTo, limit })),
      viewerOf: ({ ownerId, owner, ownerKind }) =>
        this.#currentViewer(ownerId, () => findViewer({ kind: ownerKind, id: ownerId, name: owner })),
      selectorOf: ({ filter }) => groups.expand(parseSelector(filter.selector)),
      destinationOf: (row) => destinationOf(encryptor, row),
      targetOf: ({ kind }) => targets[kind],
      now,
      random,
      timeoutMs: timeoutMs ?? TIMEOUT_MS,
    };
  }

  /** Starts what there is to deliver, without waiting for it. Returns whether there are subscriptions to deliver to. */
  async poll(): Promise<boolean> {
    const { eventId, auditId } = await this.#store.heads();
    // First: an event up to `eventId` must not be delivered by grants from before it.
    this.#auditId = auditId;
    if (auditId !== this.#loadedAuditId || this.#now() - this.#loadedMs >= RELOAD_MS) await this.#reload(auditId);
    for (const runner of this.#runners.values()) runner.start(eventId);
    if (this.#now() - this.#savedMs >= SAVE_MS) await this.#saveCursors();
    return this.#runners.size > 0;
  }

  /** Resolves when no delivery runs. */
  async idle(): Promise<void> {
    await Promise.all(Array.from(this.#runners.values(), ({ idle }) => idle));
  }

  async #reload(auditId: number): Promise<void> {
    const rows = new Map((await this.#store.active()).map((row) => [row.id, row]));
    for (const [id, runner] of this.#runners) {
      const row = rows.get(id);
      if (row === undefined) {
        runner.end();
        this.#runners.delete(id);
      } else runner.update(row);
    }
    for (const [id, row] of rows) {
      const runner = this.#runners.get(id);
      // It was stopped and resumed. A row that was read before it stopped has the old revision.
      const isResumed = runner?.isEnded && runner.revision < row.revision;
      if (runner === undefined || isResumed) this.#runners.set(id, new SubscriptionRunner(row, this.#runnerOptions));
    }
    this.#viewers.clear();
    this.#loadedAuditId = auditId;
    this.#loadedMs = this.#now();
  }

  /** Reads an account again only if anything was changed since. */
  #currentViewer(ownerId: string, find: () => Promise<EventViewer | undefined>): Promise<EventViewer | undefined> {
    const auditId = this.#auditId;
    const known = this.#viewers.get(ownerId);
    if (known?.auditId === auditId) return known.viewer;
    const viewer = find();
    this.#viewers.set(ownerId, { auditId, viewer });
    viewer.catch(() => this.#viewers.delete(ownerId));
    return viewer;
  }

  async #saveCursors(): Promise<void> {
    const cursors = new Map<string, number>();
    for (const [id, { unsavedCursor }] of this.#runners)
      if (unsavedCursor !== undefined) cursors.set(id, unsavedCursor);
    this.#savedMs = this.#now();
    if (cursors.size === 0) return;
    await this.#store.advance(cursors);
    for (const [id, cursor] of cursors) this.#runners.get(id)?.markSaved(cursor);
  }
}

/** Most subscriptions are at the same cursor: they share one query. Rows up to an id that was seen never change. */
function sharedReader(read: ReadEvents): ReadEvents {
  const pages = new Map<string, Promise<EventRow[]>>();
  return (afterId, lastId, limit) => {
    const key = `${afterId}-${lastId}-${limit}`;
    const known = pages.get(key);
    if (known !== undefined) return known;
    const page = read(afterId, lastId, limit);
    pages.set(key, page);
    page.catch(() => pages.delete(key));
    for (const oldest of pages.keys()) if (pages.size > MAX_PAGES) pages.delete(oldest);
    return page;
  };
}
