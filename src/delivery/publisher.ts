import { DurableObject } from "cloudflare:workers";
import { createEncryptor, type Encryptor } from "../auth/encryptor.ts";
import type { BrokerConnection } from "../broker/mqtt-connection.ts";
import { createOutbox, type Outbox, type OutboxMessage } from "../broker/outbox.ts";
import { createBrokerConnector } from "../broker/service-connection.ts";
import { createEmulationStore } from "../emulator/emulation-store.ts";
import { createEmulationRetention, type EmulationRetention } from "../emulator/retention.ts";
import { type Config, parseEnv } from "../env.ts";
import { createEventLog, pruneEvents } from "../events/event-log.ts";
import { createJobStore } from "../jobs/job-store.ts";
import { createStreamClient } from "../jobs/stream/stream-client.ts";
import { withDeadline } from "../lib/deadline.ts";
import { DomainError } from "../lib/errors.ts";
import { describeError, log } from "../lib/log.ts";
import { createHealth } from "../monitoring/health.ts";
import { createClickHouse } from "../storage/clickhouse.ts";
import { createDatabase, type Database } from "../storage/libsql.ts";
import { createComponentChecks } from "./component-checks.ts";
import { ComponentWatch } from "./component-watch.ts";
import { createJobExpiry, type JobExpiry } from "./job-expiry.ts";

const NAME = "publisher";
const ACKNOWLEDGE_TIMEOUT_MS = 5_000;
const BATCH_SIZE = 100;
/** Services wake the publisher after each insert into the outbox. Polling covers lost wake-ups. */
const POLL_INTERVAL_MS = 30_000;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 15_000;
const PROBE_INTERVAL_MS = 5_000;
const PROBE_KEY = "probe";
const PROBE_BYTES = 32 * 1024;
const DAY_MS = 86_400_000;

/** Holds a connection to the broker, and drains the outbox into it. Also does the work that one place must do regularly. */
export class Publisher extends DurableObject<Env> {
  readonly #config: Config;
  readonly #database: Database;
  readonly #outbox: Outbox;
  readonly #jobExpiry: JobExpiry;
  readonly #encryptor: Encryptor;
  readonly #emulationRetention: EmulationRetention;
  readonly #componentWatch: ComponentWatch;
  readonly #connectToBroker: () => Promise<BrokerConnection>;
  #connection: BrokerConnection | undefined;
  #draining: Promise<void> | undefined;
  /** Set by each wake-up. During a drain it means that the outbox may have messages that the drain has not seen. */
  #drainRequested = false;
  #failures = 0;
  #sweptMs = Number.NEGATIVE_INFINITY;
  #probedMs = Number.NEGATIVE_INFINITY;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#config = parseEnv(env);
    this.#connectToBroker = createBrokerConnector(this.#config, NAME);
    const database = createDatabase({ url: this.#config.LIBSQL_URL, authToken: this.#config.LIBSQL_AUTH_TOKEN });
    this.#database = database;
    this.#outbox = createOutbox(database);
    this.#encryptor = createEncryptor(this.#config.ENCRYPTION_KEY);
    const retentionMs = this.#config.EMULATION_RETENTION_HOURS * 3_600_000;
    this.#emulationRetention = createEmulationRetention(createEmulationStore(database), retentionMs);
    this.#jobExpiry = createJobExpiry(createJobStore(database), createStreamClient(env.JOB_STREAM));
    const checks = createComponentChecks(this.#config, database, createClickHouse(this.#config), () => this.#probe());
    this.#componentWatch = new ComponentWatch({
      storage: ctx.storage,
      health: createHealth(checks),
      eventLog: createEventLog(database),
    });
  }

  /** Starts to drain the outbox, and returns without waiting for it. */
  async wake(): Promise<void> {
    this.#drainRequested = true;
    // In case this object stops before the drain ends. During a drain an alarm is already set, perhaps for an earlier time.
    if (this.#draining === undefined) await this.ctx.storage.setAlarm(Date.now() + POLL_INTERVAL_MS);
    this.ctx.waitUntil(this.#drain());
  }

  /** @deprecated The former name of `wake`, which Workers of the previous release call. */
  async nudge(): Promise<void> {
    await this.wake();
  }

  /** Throws if Durable Objects cannot store data: on one machine, if the disk is full. */
  async check(): Promise<void> {
    await this.#probe();
    // Before the first message no alarm is set, but the components must be watched.
    if ((await this.ctx.storage.getAlarm()) === null) await this.ctx.storage.setAlarm(Date.now() + POLL_INTERVAL_MS);
  }

  async #probe(): Promise<void> {
    if (Date.now() - this.#probedMs < PROBE_INTERVAL_MS) return;
    // Larger than the free space inside the database file, so that the file must grow.
    await this.ctx.storage.put(PROBE_KEY, `${Date.now()} ${" ".repeat(PROBE_BYTES)}`);
    await this.ctx.storage.sync();
    this.#probedMs = Date.now();
  }

  override async alarm(): Promise<void> {
    await this.#drain();
    await this.#sweepIfDue();
  }

  /** Removes the agents of ended emulations and old events, and watches the components. Runs after a drain and does not block the next one. */
  async #sweepIfDue(): Promise<void> {
    // During a broker outage the alarm fires much more often than the sweep is needed.
    if (Date.now() - this.#sweptMs < POLL_INTERVAL_MS / 2) return;
    this.#sweptMs = Date.now();
    await this.#emulationRetention.sweep().catch((error: unknown) => {
      log.warn("emulation sweep failed", { error: describeError(error) });
    });
    await pruneEvents(this.#database, this.#config.EVENT_DAYS * DAY_MS);
    await this.#componentWatch.run();
  }

  #drain(): Promise<void> {
    this.#draining ??= this.#drainUntilIdle();
    return this.#draining;
  }

  async #drainUntilIdle(): Promise<void> {
    try {
      // After a failure, the alarm retries soon enough.
      do await this.#drainOnce();
      while (this.#drainRequested && this.#failures === 0);
    } finally {
      // No wake-up can run between the last check of `#drainRequested` and this line: both are synchronous.
      this.#draining = undefined;
    }
  }

  async #drainOnce(): Promise<void> {
    let nextMs = Date.now() + POLL_INTERVAL_MS;
    try {
      for (let isMore = true; isMore; ) {
        this.#drainRequested = false;
        // Run both: jobs must expire even during a broker outage.
        const outcomes = await settleAll([this.#expireJobs(), this.#publishDue()]);
        isMore = outcomes.includes(true);
      }
      const state = await this.#outbox.state();
      nextMs = Math.min(nextMs, state.nextMs);
      if (state.messages === 0) this.#disconnect();
      this.#failures = 0;
    } catch (error) {
      this.#disconnect();
      const retryMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, MAX_RETRY_MS);
      nextMs = Date.now() + retryMs;
      const { messages, oldestMs } = await this.#outbox
        .state()
        .catch(() => ({ messages: undefined, oldestMs: undefined }));
      log.warn("outbox drain failed", { messages, oldest_ms: oldestMs, error: describeError(error) });
    }
    await this.ctx.storage.setAlarm(Math.max(nextMs, Date.now()));
  }

  /** Ends a batch of jobs whose messages have expired. Returns whether there may be more. */
  async #expireJobs(): Promise<boolean> {
    const jobNumbers = await this.#outbox.expired(BATCH_SIZE);
    const expire = async (jobNumber: string): Promise<void> => {
      await this.#jobExpiry.expire(jobNumber).catch((error: unknown) => {
        // Retry outages. Any other error would repeat forever, so drop the message.
        if (error instanceof DomainError) throw error;
        log.error("bug", { error: describeError(error) });
      });
      // Withdraw last: if this object stops in between, the next drain expires the job.
      await this.#outbox.withdraw(jobNumber);
    };
    await settleAll(jobNumbers.map(expire));
    return jobNumbers.length === BATCH_SIZE;
  }

  /** Publishes a batch of due messages. Returns whether there may be more. */
  async #publishDue(): Promise<boolean> {
    const due = await this.#outbox.due(BATCH_SIZE);
    if (due.length === 0) return false;
    const connection = await this.#connect();
    const acknowledged: OutboxMessage[] = [];
    const unpublishable: OutboxMessage[] = [];
    const publish = async (message: OutboxMessage): Promise<void> => {
      const { jobNumber, topic, payload } = message;
      try {
        await connection.publish(topic, await this.#encryptor.open(payload, jobNumber));
        acknowledged.push(message);
      } catch (error) {
        // A lost connection affects all messages. An error on an open connection affects this message only.
        if (!connection.isOpen) throw error;
        if (unpublishable.push(message) > 1) return;
        log.error("message publication failed", { job_number: jobNumber, error: describeError(error) });
      }
    };
    try {
      await withDeadline(ACKNOWLEDGE_TIMEOUT_MS, () => Promise.all(due.map(publish)));
    } finally {
      // Also after a timeout: acknowledged messages must not be published again at once.
      await this.#outbox.markPublished(acknowledged);
      await this.#outbox.postpone(unpublishable);
      if (acknowledged.length > 0) this.#failures = 0;
    }
    return due.length === BATCH_SIZE;
  }

  async #connect(): Promise<BrokerConnection> {
    if (this.#connection?.isOpen) return this.#connection;
    this.#connection = await this.#connectToBroker();
    return this.#connection;
  }

  #disconnect(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

/** Returns a client of the publisher. Creates a stub for each call: a stub works only in the request that created it. */
export function publisherOf(namespace: DurableObjectNamespace<Publisher>): Pick<Publisher, "wake" | "check"> {
  const publisher = () => namespace.getByName(NAME);
  return {
    check: () => publisher().check(),
    // Calls the former name: during a rollout the object may still run the previous release. A lost wake-up only delays the drain.
    wake: () =>
      publisher()
        .nudge()
        .catch((error: unknown) => log.warn("publisher wake-up failed", { error: describeError(error) })),
  };
}

/** Awaits all promises, even after one has failed, and then returns their values or throws the first error. */
async function settleAll<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return await Promise.all(promises);
}
