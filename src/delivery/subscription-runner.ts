import type { DeliveryStore, Progress } from "../events/delivery-store.ts";
import { type EventRow, toNetworkEvent } from "../events/event-log.ts";
import type { SubscriptionRow } from "../events/subscription-store.ts";
import { type EventViewer, isVisible, matchesFilter } from "../events/visibility.ts";
import { withDeadline } from "../lib/deadline.ts";
import { describeError, log } from "../lib/log.ts";
import type { Selector } from "../lib/selectors.ts";
import { retryDelayMs, STOP_AFTER_MS } from "./retry-schedule.ts";
import { type Destination, type Failure, failed, messageId, type Outcome, type Target } from "./targets/target.ts";

/** Returns events after an id, up to another one, in the order of their ids. */
export type ReadEvents = (afterId: number, lastId: number, limit: number) => Promise<EventRow[]>;

export interface RunnerOptions {
  store: Pick<DeliveryStore, "stop" | "remove">;
  /** Records how an attempt ended. */
  record(progress: Progress): Promise<void>;
  read: ReadEvents;
  /** Returns what the owner sees now. Undefined if the account does not exist any more. */
  viewerOf(subscription: SubscriptionRow): Promise<EventViewer | undefined>;
  /** Returns the selector of the filter with the conditions of its groups. Undefined if a group does not exist. */
  selectorOf(subscription: SubscriptionRow): Promise<Selector | undefined>;
  destinationOf(subscription: SubscriptionRow): Promise<Destination>;
  targetOf(subscription: SubscriptionRow): Target;
  now(): number;
  random(): number;
  /** Limit for one call of a target. */
  timeoutMs: number;
}

/** Events per attempt. Also how many may arrive twice after a crash. */
const PAGE_EVENTS = 100;
/** Agents whose events are sent at the same time. */
const LANES = 8;
const PAUSE_MS = 1_000;

/**
 * Delivers events to one subscription. Events of one agent are sent one after the other, in their order, and those of different agents at
 * the same time. Events about no agent have a lane of their own, like those of one agent. An event that fails stops its lane. The cursor
 * moves up to the first event that is not delivered.
 */
export class SubscriptionRunner {
  readonly #options: RunnerOptions;
  #row: SubscriptionRow;
  #destination: Destination | undefined;
  #cursor: number;
  #savedCursor: number;
  #headId = 0;
  /** Calls that the target has accepted. */
  #accepted = 0;
  /** Events after the cursor that the target has accepted, or that the owner no longer sees. */
  readonly #delivered = new Set<number>();
  #gatherUntilMs: number | undefined;
  /** Set after an error that is not the target's. */
  #pausedUntilMs = 0;
  #running: Promise<void> | undefined;
  #isEnded = false;

  constructor(row: SubscriptionRow, options: RunnerOptions) {
    this.#row = row;
    this.#options = options;
    this.#cursor = row.cursor;
    this.#savedCursor = row.cursor;
  }

  /** Whether it has ended, for this revision of the subscription. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  get revision(): number {
    return this.#row.revision;
  }

  /** Resolves when no attempt runs. */
  get idle(): Promise<void> {
    return this.#running ?? Promise.resolve();
  }

  /** The cursor, if the store has an older one and no attempt is about to write it. */
  get unsavedCursor(): number | undefined {
    return this.#running === undefined && this.#cursor > this.#savedCursor ? this.#cursor : undefined;
  }

  markSaved(cursor: number): void {
    this.#savedCursor = Math.max(this.#savedCursor, cursor);
  }

  /** Takes over a change by a caller. The cursor in memory is never behind the stored one. */
  update(row: SubscriptionRow): void {
    if (this.#isEnded || row.revision === this.#row.revision) return;
    this.#row = row;
    this.#destination = undefined;
  }

  /** Ends the delivery, because the subscription was deleted or stopped. */
  end(): void {
    this.#isEnded = true;
  }

  /** Delivers events up to an id, unless this happens already or it has to wait. */
  start(headId: number): void {
    this.#headId = Math.max(this.#headId, headId);
    if (this.#running !== undefined || this.#isEnded || this.#headId <= this.#cursor) return;
    const dueMs = Math.max(this.#row.dueAt?.getTime() ?? 0, this.#gatherUntilMs ?? 0, this.#pausedUntilMs);
    if (this.#options.now() < dueMs) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    try {
      while (!this.#isEnded && this.#cursor < this.#headId) if (!(await this.#deliverPage())) return;
    } catch (error) {
      // Tries again soon. The cursor in memory has everything that was delivered.
      this.#pausedUntilMs = this.#options.now() + PAUSE_MS;
      log.warn("event delivery interrupted", { subscription: this.#row.id, error: describeError(error) });
    }
  }

  /** Delivers the next events. Returns whether the next page may follow at once. */
  async #deliverPage(): Promise<boolean> {
    const { read, viewerOf, selectorOf, targetOf, now } = this.#options;
    const [row, headId] = [this.#row, this.#headId];
    const target = targetOf(row);
    const limit = target.gatherMs === undefined ? PAGE_EVENTS : 10 * PAGE_EVENTS;
    const page = await read(this.#cursor, headId, limit);
    const endId = page.length < limit ? headId : (page.at(-1)?.id ?? headId);
    const selector = await selectorOf(row);
    const types = row.filter.types.length === 0 ? undefined : row.filter.types;
    const filter = selector && { types, selector, severity: row.filter.severity };
    const selected = page.filter(
      (event) => filter !== undefined && matchesFilter(filter, event) && (target.accepts?.(event.type) ?? true),
    );
    // Reads the account only if an event is for it.
    const viewer = selected.length === 0 ? undefined : await viewerOf(row);
    if (selected.length > 0 && viewer === undefined) return await this.#removeOrphan();
    const wanted = selected.filter((event) => viewer !== undefined && isVisible(viewer, event));
    const open = wanted.filter(({ id }) => !this.#delivered.has(id));
    if (open.length === 0) {
      this.#moveTo(endId);
      // What failed was not to be delivered any more. A later failure is the first of another outage.
      if (row.failures > 0) await this.#record(row, undefined, false);
      return true;
    }
    if (target.gatherMs !== undefined) {
      this.#gatherUntilMs ??= now() + target.gatherMs;
      if (now() < this.#gatherUntilMs) return false;
      this.#gatherUntilMs = undefined;
    }
    const acceptedBefore = this.#accepted;
    const failure = target.gatherMs === undefined ? await this.#sendInLanes(open) : await this.#send(open);
    const stuck = wanted.find(({ id }) => !this.#delivered.has(id));
    this.#moveTo(stuck === undefined ? endId : stuck.id - 1);
    await this.#record(row, failure, this.#accepted > acceptedBefore);
    return failure === undefined;
  }

  /** Returns a failure, if there was one. Throws if the accounts database is not available. */
  async #sendInLanes(open: readonly EventRow[]): Promise<Failure | undefined> {
    const lanes = [...Map.groupBy(open, ({ apId }) => apId ?? "").values()].reverse();
    const failures: Failure[] = [];
    const work = async (): Promise<void> => {
      // A receiver that is down fails in all lanes at once: then the attempt ends, and not every agent's lane has to wait for a timeout.
      while (failures.length < LANES && !this.#isEnded) {
        const lane = lanes.pop();
        if (lane === undefined) return;
        const failure = await this.#sendLane(lane);
        if (failure !== undefined) failures.push(failure);
      }
    };
    const ended = await Promise.allSettled(Array.from({ length: LANES }, work));
    for (const lane of ended) if (lane.status === "rejected") throw lane.reason;
    return failures.find(({ isGone }) => isGone) ?? failures[0];
  }

  async #sendLane(lane: readonly EventRow[]): Promise<Failure | undefined> {
    for (const event of lane) {
      const failure = await this.#send([event]);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  /** Sends events in one call. Returns the failure, if it failed. */
  async #send(candidates: readonly EventRow[]): Promise<Failure | undefined> {
    const { viewerOf, destinationOf, targetOf, timeoutMs } = this.#options;
    if (this.#isEnded) return failed("The subscription has ended");
    const row = this.#row;
    // Again for every call: the grants may have changed since the attempt began. Events that the owner no longer sees are skipped.
    const viewer = await viewerOf(row);
    const visible = candidates.filter((event) => viewer !== undefined && isVisible(viewer, event));
    const [first, ...others] = visible.map((event) => ({ id: messageId(event.id), event: toNetworkEvent(event) }));
    if (first !== undefined) {
      const destination = this.#destination ?? (await destinationOf(row).catch(() => undefined));
      if (destination === undefined) return failed("The secret of the subscription cannot be decrypted");
      if (row === this.#row) this.#destination = destination;
      const outcome: Outcome = await withDeadline(timeoutMs, (signal) =>
        targetOf(row).send(destination, [first, ...others], signal),
      ).catch((error: unknown) => failed(reasonOf(error)));
      if (!outcome.isDelivered) return outcome;
      this.#accepted++;
    }
    for (const { id } of candidates) this.#delivered.add(id);
    return undefined;
  }

  async #record(row: SubscriptionRow, failure: Failure | undefined, hasDelivered: boolean): Promise<void> {
    const { store, record, now, random } = this.#options;
    // A caller has changed the target meanwhile, or the subscription has ended: the failure says nothing about it any more.
    if (failure !== undefined && (this.#isEnded || row.revision !== this.#row.revision)) return;
    const at = new Date(now());
    const cursor = this.#cursor;
    const deliveredAt = hasDelivered ? at : undefined;
    if (failure === undefined) {
      this.#row = { ...this.#row, failures: 0, failingSince: null, lastError: null, dueAt: null };
      await record({ id: row.id, cursor, deliveredAt });
      this.markSaved(cursor);
      return;
    }
    // A target that has accepted something is unreliable, not down: the back-off begins anew.
    const before = hasDelivered ? { failures: 0, failingSince: null } : row;
    const since = before.failingSince ?? at;
    const failures = before.failures + 1;
    const dueAt = new Date(at.getTime() + retryDelayMs(failures, random()));
    const progress = { id: row.id, cursor, deliveredAt, failure: { error: failure.error, failures, since, dueAt } };
    this.#row = { ...this.#row, failures, failingSince: since, lastError: failure.error, dueAt };
    if (failure.isGone || at.getTime() - since.getTime() >= STOP_AFTER_MS) {
      await store.stop(row, progress, at);
      this.#isEnded = true;
      log.warn("subscription stopped", { subscription: row.id, error: failure.error });
    } else {
      await record(progress);
    }
    this.markSaved(cursor);
  }

  async #removeOrphan(): Promise<false> {
    await this.#options.store.remove(this.#row.id);
    this.#isEnded = true;
    return false;
  }

  #moveTo(id: number): void {
    this.#cursor = Math.max(this.#cursor, id);
    for (const delivered of this.#delivered) if (delivered <= this.#cursor) this.#delivered.delete(delivered);
  }
}

/** Says for people why a call failed, without the details of the network. */
const reasonOf = (error: unknown): string =>
  error instanceof Error && error.message.startsWith("No response within") ? error.message : "The connection failed";
