import { DurableObject } from "cloudflare:workers";
import { createEncryptor, type Encryptor } from "../auth/encryptor.ts";
import type { BrokerConnection } from "../broker/mqtt-connection.ts";
import { createBrokerConnector } from "../broker/service-connection.ts";
import { parseEnv } from "../env.ts";
import { NOTIFIER_NAME } from "../events/event-log.ts";
import { createSubscriptionStore, type SubscriptionStore } from "../events/subscription-store.ts";
import { withDeadline } from "../lib/deadline.ts";
import { describeError, log } from "../lib/log.ts";
import { createMailer } from "../mail/mailer.ts";
import type { SubscriptionTest, TargetKind } from "../schemas/subscriptions.ts";
import { callObject } from "../storage/durable-objects.ts";
import { createDatabase } from "../storage/libsql.ts";
import { destinationOf, EventDispatcher } from "./event-dispatcher.ts";
import { createAlertmanagerTarget } from "./targets/alertmanager.ts";
import { createEmailTarget } from "./targets/email.ts";
import { createPost, type Fetch } from "./targets/http-post.ts";
import { createMqttTarget } from "./targets/mqtt.ts";
import { failed, type Target } from "./targets/target.ts";
import { createWebhookTarget } from "./targets/webhook.ts";

/**
 * Shards and the Worker wake the notifier, but the Worker notices a change only with the next request, up to two seconds later. A poll is
 * one query for two greatest ids, which the database has at hand. It runs only while there are subscriptions.
 */
const POLL_INTERVAL_MS = 500;
const MAX_RETRY_MS = 15_000;
/** Starts the polls again after a restart of the object. */
const ALARM_INTERVAL_MS = 10_000;
const TEST_TIMEOUT_MS = 10_000;

/** Bindings that exist on one machine only. */
export interface WebhookBinding {
  /** A network that refuses addresses that WEBHOOK_NETWORKS does not allow, after looking them up. */
  WEBHOOKS?: Pick<Fetcher, "fetch">;
}

/** Delivers events to subscriptions. There is one. */
export class Notifier extends DurableObject<Env & WebhookBinding> {
  readonly #connectToBroker: () => Promise<BrokerConnection>;
  readonly #subscriptions: SubscriptionStore;
  readonly #encryptor: Encryptor;
  readonly #targets: Record<TargetKind, Target>;
  readonly #dispatcher: EventDispatcher;
  #polling: Promise<void> | undefined;
  /** Set by each wake-up. During a poll it means that there may be events that the poll has not seen. */
  #pollRequested = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #alarmMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #connection: Promise<BrokerConnection> | undefined;

  constructor(ctx: DurableObjectState, env: Env & WebhookBinding) {
    super(ctx, env);
    const config = parseEnv(env);
    const { LIBSQL_URL, LIBSQL_AUTH_TOKEN, ENCRYPTION_KEY, WEBHOOK_NETWORKS, MAIL_FROM, MAIL_URL } = config;
    this.#connectToBroker = createBrokerConnector(config, NOTIFIER_NAME);
    const database = createDatabase({ url: LIBSQL_URL, authToken: LIBSQL_AUTH_TOKEN });
    this.#encryptor = createEncryptor(ENCRYPTION_KEY);
    this.#subscriptions = createSubscriptionStore(database);
    const { WEBHOOKS } = env;
    const send: Fetch =
      WEBHOOKS === undefined ? (url, init) => fetch(url, init) : (url, init) => WEBHOOKS.fetch(url, init);
    const post = createPost({ fetch: send, allowsPrivate: WEBHOOK_NETWORKS === "private" });
    this.#targets = {
      webhook: createWebhookTarget(post, Date.now),
      alertmanager: createAlertmanagerTarget(post),
      email: createEmailTarget(createMailer({ from: MAIL_FROM, url: MAIL_URL, binding: env.EMAIL })),
      mqtt: createMqttTarget(() => this.#connect()),
    };
    this.#dispatcher = new EventDispatcher({ database, encryptor: this.#encryptor, targets: this.#targets });
  }

  /** Looks for events to deliver, and returns without waiting for it. */
  async wake(): Promise<void> {
    this.#pollRequested = true;
    this.ctx.waitUntil(this.#poll());
  }

  /** Sends an event to the target of a subscription, outside the order of its other events. */
  async sendTest(id: string): Promise<SubscriptionTest> {
    const row = await this.#subscriptions.find(id);
    if (row === undefined) return { delivered: false, error: "The subscription does not exist" };
    const event = {
      id: 0,
      time: new Date().toISOString(),
      type: "subscription.test" as const,
      severity: "info" as const,
      ap_id: null,
      labels: {},
      actor: `${row.ownerKind}:${row.owner}`,
      data: { subscription_id: id, name: row.name, text: "A test of the subscription" },
    };
    const message = { id: `msg_test_${crypto.randomUUID()}`, event };
    const outcome = await withDeadline(TEST_TIMEOUT_MS, async (signal) =>
      this.#targets[row.kind].send(await destinationOf(this.#encryptor, row), [message], signal),
    ).catch(() => failed("The connection failed"));
    return outcome.isDelivered ? { delivered: true, error: null } : { delivered: false, error: outcome.error };
  }

  override async alarm(): Promise<void> {
    await this.#poll();
  }

  #poll(): Promise<void> {
    this.#polling ??= this.#pollUntilSeen().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  async #pollUntilSeen(): Promise<void> {
    clearTimeout(this.#timer);
    let isNeeded = true;
    try {
      do {
        this.#pollRequested = false;
        isNeeded = await this.#dispatcher.poll();
      } while (this.#pollRequested);
      this.#failures = 0;
    } catch (error) {
      this.#failures++;
      log.warn("event poll failed", { error: describeError(error) });
    }
    if (!isNeeded) return;
    const delayMs = Math.min(POLL_INTERVAL_MS * 2 ** Math.min(this.#failures, 10), MAX_RETRY_MS);
    this.#timer = setTimeout(() => void this.#poll(), delayMs);
    if (this.#alarmMs > Date.now()) return;
    this.#alarmMs = Date.now() + ALARM_INTERVAL_MS;
    await this.ctx.storage.setAlarm(this.#alarmMs);
  }

  /** Lanes share one connection. */
  async #connect(): Promise<BrokerConnection> {
    const known = this.#connection;
    const connection = await known?.catch(() => undefined);
    if (connection?.isOpen) return connection;
    // Unless another lane has opened one meanwhile.
    if (this.#connection === known) this.#connection = this.#connectToBroker();
    return await (this.#connection as Promise<BrokerConnection>);
  }
}

/** Returns a client of the notifier. Creates a stub for each call: a stub works only in the request that created it. */
export function notifierOf(namespace: DurableObjectNamespace<Notifier>): Pick<Notifier, "wake" | "sendTest"> {
  const notifier = () => namespace.getByName(NOTIFIER_NAME);
  return {
    sendTest: (id) => callObject("notifier", notifier().sendTest(id)),
    // A lost wake-up only delays the delivery until the next poll.
    wake: () =>
      notifier()
        .wake()
        .catch((error: unknown) => log.warn("notifier wake-up failed", { error: describeError(error) })),
  };
}
