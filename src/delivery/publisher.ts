import { DurableObject } from "cloudflare:workers";
import { createEncryptor, type Encryptor } from "../auth/encryptor.ts";
import { createTokens } from "../auth/tokens.ts";
import { BrokerConnection } from "../broker/mqtt-connection.ts";
import { createOutbox, type Outbox, type OutboxMessage } from "../broker/outbox.ts";
import { createEmulationStore } from "../emulator/emulation-store.ts";
import { createEmulationRetention, type EmulationRetention } from "../emulator/retention.ts";
import { type Config, parseEnv } from "../env.ts";
import { createJobStore } from "../jobs/job-store.ts";
import { createStreamClient } from "../jobs/stream/stream-client.ts";
import { withDeadline } from "../lib/deadline.ts";
import { DomainError } from "../lib/errors.ts";
import { describeError, log } from "../lib/log.ts";
import { createDatabase } from "../storage/libsql.ts";
import { createJobExpiry, type JobExpiry } from "./job-expiry.ts";

const NAME = "publisher";
const KEEP_ALIVE_S = 60;
const CONNECT_MS = 5_000;
const ACKNOWLEDGED_MS = 5_000;
const AT_ONCE = 100;
/** Whoever puts something into the outbox says so; this is for the case that nobody could. */
const LOOK_EVERY_MS = 30_000;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 15_000;
const WRITE_EVERY_MS = 5_000;
const PROBE_KEY = "probe";
const PROBE_BYTES = 32 * 1024;

/** Holds the one connection to the broker over which the service speaks, and empties the outbox into it. */
export class Publisher extends DurableObject<Env> {
  readonly #config: Config;
  readonly #outbox: Outbox;
  readonly #jobs: JobExpiry;
  readonly #encryptor: Encryptor;
  readonly #emulations: EmulationRetention;
  #connection: BrokerConnection | undefined;
  #draining: Promise<void> | undefined;
  /** Somebody came while it was being emptied, perhaps with something that was not seen any more. */
  #isWanted = false;
  #failures = 0;
  #sweptMs = Number.NEGATIVE_INFINITY;
  #writtenMs = Number.NEGATIVE_INFINITY;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#config = parseEnv(env);
    const database = createDatabase({ url: this.#config.LIBSQL_URL, authToken: this.#config.LIBSQL_AUTH_TOKEN });
    this.#outbox = createOutbox(database);
    this.#encryptor = createEncryptor(this.#config.ENCRYPTION_KEY);
    const retentionMs = this.#config.EMULATION_RETENTION_HOURS * 3_600_000;
    this.#emulations = createEmulationRetention(createEmulationStore(database), retentionMs);
    this.#jobs = createJobExpiry(createJobStore(database), createStreamClient(env.JOB_STREAM));
  }

  /** There is something in the outbox. Returns at once. */
  async nudge(): Promise<void> {
    this.#isWanted = true;
    // Should this object end before it is done. While it is at work an alarm is set already, perhaps for an earlier time.
    if (this.#draining === undefined) await this.ctx.storage.setAlarm(Date.now() + LOOK_EVERY_MS);
    this.ctx.waitUntil(this.#drain());
  }

  /** Whether objects can keep things: on one machine, whether the disk has room. Fails where they cannot. */
  async check(): Promise<void> {
    if (Date.now() - this.#writtenMs < WRITE_EVERY_MS) return;
    // More than fits into what the file had left.
    await this.ctx.storage.put(PROBE_KEY, `${Date.now()} ${" ".repeat(PROBE_BYTES)}`);
    await this.ctx.storage.sync();
    this.#writtenMs = Date.now();
  }

  override async alarm(): Promise<void> {
    await this.#drain();
    await this.#sweepIfDue();
  }

  /** Behind the outbox and beside it: commands that come meanwhile do not wait for it. */
  async #sweepIfDue(): Promise<void> {
    // While the broker is away the alarm comes much more often than this is needed.
    if (Date.now() - this.#sweptMs < LOOK_EVERY_MS / 2) return;
    this.#sweptMs = Date.now();
    await this.#emulations.sweep().catch((error: unknown) => {
      log.warn("emulation sweep failed", { error: describeError(error) });
    });
  }

  #drain(): Promise<void> {
    this.#draining ??= this.#emptyUntilNobodyComes();
    return this.#draining;
  }

  async #emptyUntilNobodyComes(): Promise<void> {
    try {
      // Where it failed the alarm comes soon enough.
      do await this.#empty();
      while (this.#isWanted && this.#failures === 0);
    } finally {
      // Nothing comes between the last look at who came and this.
      this.#draining = undefined;
    }
  }

  async #empty(): Promise<void> {
    let nextMs = Date.now() + LOOK_EVERY_MS;
    try {
      for (let isMore = true; isMore; ) {
        this.#isWanted = false;
        // Neither waits for the other: what is over is over, also while the broker is away.
        const outcomes = await settleAll([this.#endExpired(), this.#publishDue()]);
        isMore = outcomes.includes(true);
      }
      const state = await this.#outbox.state();
      nextMs = Math.min(nextMs, state.nextMs);
      if (state.messages === 0) this.#disconnect();
      this.#failures = 0;
    } catch (error) {
      this.#disconnect();
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, MAX_PAUSE_MS);
      nextMs = Date.now() + pauseMs;
      const { messages, oldestMs } = await this.#outbox
        .state()
        .catch(() => ({ messages: undefined, oldestMs: undefined }));
      log.warn("the outbox waits", { messages, oldest_ms: oldestMs, error: describeError(error) });
    }
    await this.ctx.storage.setAlarm(Math.max(nextMs, Date.now()));
  }

  /** Ends some of the jobs that nobody has answered in time. Whether there may be more. */
  async #endExpired(): Promise<boolean> {
    const jobNumbers = await this.#outbox.expired(AT_ONCE);
    const end = async (jobNumber: string): Promise<void> => {
      await this.#jobs.expire(jobNumber).catch((error: unknown) => {
        // What may pass is tried again; anything else would fail for ever.
        if (error instanceof DomainError) throw error;
        log.error("bug", { error: describeError(error) });
      });
      // Only then: a job must not wait for ever because this object ended in between.
      await this.#outbox.withdraw(jobNumber);
    };
    await settleAll(jobNumbers.map(end));
    return jobNumbers.length === AT_ONCE;
  }

  /** Publishes some of what is due. Whether there may be more. */
  async #publishDue(): Promise<boolean> {
    const due = await this.#outbox.due(AT_ONCE);
    if (due.length === 0) return false;
    const connection = await this.#connect();
    const acknowledged: OutboxMessage[] = [];
    const unfit: OutboxMessage[] = [];
    const publish = async (message: OutboxMessage): Promise<void> => {
      const { jobNumber, topic, payload } = message;
      try {
        await connection.publish(topic, await this.#encryptor.open(payload, jobNumber));
        acknowledged.push(message);
      } catch (error) {
        // A connection ends for all of them; what goes wrong while it stands is the message's own fault.
        if (!connection.isOpen) throw error;
        if (unfit.push(message) > 1) return;
        log.error("a message cannot be published", { job_number: jobNumber, error: describeError(error) });
      }
    };
    try {
      await withDeadline(ACKNOWLEDGED_MS, () => Promise.all(due.map(publish)));
    } finally {
      // Also where the line is too slow for all of them: what got through does not go over it again.
      await this.#outbox.published(acknowledged);
      await this.#outbox.postpone(unfit);
      if (acknowledged.length > 0) this.#failures = 0;
    }
    return due.length === AT_ONCE;
  }

  async #connect(): Promise<BrokerConnection> {
    if (this.#connection?.isOpen) return this.#connection;
    const { MQTT_URL, JWT_KEYS, JWT_ISSUER, TOKEN_LIFETIME_SECONDS } = this.#config;
    const tokens = createTokens({ keys: JWT_KEYS, issuer: JWT_ISSUER, lifetimeSeconds: TOKEN_LIFETIME_SECONDS });
    // Of no account: good at the broker, where the signature counts, and for nothing else.
    const password = await tokens.issue({
      sub: NAME,
      login_type: "third_party_app",
      roles: [],
      scope: "broker:use",
      ver: 0,
    });
    const options = { clientId: NAME, keepAliveS: KEEP_ALIVE_S, username: NAME, password };
    this.#connection = await withDeadline(CONNECT_MS, (signal) => BrokerConnection.open(MQTT_URL, options, signal));
    return this.#connection;
  }

  #disconnect(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

/** The way to it, for as many requests as come: a stub is good only in the one that it was made in. */
export function publisherOf(namespace: DurableObjectNamespace<Publisher>): Pick<Publisher, "nudge" | "check"> {
  const publisher = () => namespace.getByName(NAME);
  return {
    check: () => publisher().check(),
    // If nobody hears it, the outbox is looked at before long all the same.
    nudge: () =>
      publisher()
        .nudge()
        .catch((error: unknown) => log.warn("the publisher was not told", { error: describeError(error) })),
  };
}

/** What all of them come to; where one fails, it is said only when the others are done as well. */
async function settleAll<T>(works: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(works);
  return await Promise.all(works);
}
