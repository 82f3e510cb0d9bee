import { env } from "cloudflare:test";
import { sql } from "drizzle-orm";
import { type StoredGrant, users } from "../../../src/accounts/account-tables.ts";
import { createUserStore } from "../../../src/accounts/user-store.ts";
import { createEncryptor } from "../../../src/auth/encryptor.ts";
import { randomSigningKey } from "../../../src/auth/secrets.ts";
import { EventDispatcher } from "../../../src/delivery/event-dispatcher.ts";
import { createAlertmanagerTarget } from "../../../src/delivery/targets/alertmanager.ts";
import { createEmailTarget } from "../../../src/delivery/targets/email.ts";
import { createPost, type Fetch } from "../../../src/delivery/targets/http-post.ts";
import { failed } from "../../../src/delivery/targets/target.ts";
import { createWebhookTarget } from "../../../src/delivery/targets/webhook.ts";
import { parseEnv } from "../../../src/env.ts";
import { events, subscriptions } from "../../../src/events/event-tables.ts";
import { sealSecrets } from "../../../src/events/subscription-secrets.ts";
import { createSubscriptionStore, type NewSubscription } from "../../../src/events/subscription-store.ts";
import type { Message } from "../../../src/mail/mailer.ts";
import type { NetworkEvent } from "../../../src/schemas/events.ts";
import { type SubscriptionFilter as Filter, SubscriptionFilter } from "../../../src/schemas/subscriptions.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { settings, uniqueEmail } from "../support.ts";

/** Deliveries with a clock of their own, in a database that the service's notifier does not read. */

export const database = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" });
export const encryptor = createEncryptor(parseEnv(env).ENCRYPTION_KEY);
export const store = createSubscriptionStore(database);
export const userStore = createUserStore(database);
export const BY = { kind: "console", name: "test", requestId: "" } as const;

export const clean = async (): Promise<void> => {
  await database.batch([database.delete(subscriptions), database.delete(events), database.delete(users)]);
};

export async function newUser(grants: StoredGrant[] | null = null, roles: ("admin" | "user")[] = ["user"]) {
  const username = uniqueEmail();
  await userStore.insert({ username, passwordHash: "", roles, grants }, BY);
  const user = await userStore.find(username);
  return { id: user?.id ?? "", name: username };
}

export interface Subscribed {
  id: string;
  secret: string;
}

export async function subscribe(
  owner: { id: string; name: string },
  address: string,
  filter: Partial<Filter> = {},
  kind: NewSubscription["kind"] = "webhook",
): Promise<Subscribed> {
  const [id, secret] = [crypto.randomUUID(), randomSigningKey()];
  const sealedSecret = kind === "webhook" ? await sealSecrets(encryptor, id, { signingKey: secret }) : null;
  const target = { kind, address, sealedSecret, hasCredentials: false };
  const of = { ownerId: owner.id, owner: owner.name, ownerKind: "user" as const };
  await store.insert({ id, name: "Test", filter: SubscriptionFilter.parse(filter), ...target, ...of }, BY);
  return { id, secret };
}

export async function addEvents(...added: Partial<typeof events.$inferInsert>[]): Promise<number[]> {
  const rows = added.map((event) => ({
    at: new Date(),
    type: "agent.updated" as const,
    severity: "info" as const,
    apId: "ap-1",
    ...event,
  }));
  return (await database.insert(events).values(rows).returning({ id: events.id })).map(({ id }) => id);
}

/** A server on the internet: what it got, and how it responds. */
export class Receiver {
  readonly requests: { url: string; headers: Headers; text: string }[] = [];
  respond: (event: NetworkEvent) => Response | Promise<Response> = () => new Response("ok");

  /** The numbers of the events that it got. */
  get got(): number[] {
    return this.requests.map(({ text }) => (JSON.parse(text) as { data: NetworkEvent }).data.id);
  }
}

export class World {
  nowMs = Date.now();
  readonly mails: Message[] = [];
  readonly unreachable: string[] = [];
  readonly #receivers = new Map<string, Receiver>();
  dispatcher: EventDispatcher;

  constructor(timeoutMs = 10_000) {
    this.dispatcher = this.restart(timeoutMs);
  }

  /** Forgets everything that is not in the database. */
  restart(timeoutMs = 10_000): EventDispatcher {
    const post = createPost({ fetch: this.#fetch, allowsPrivate: false });
    const sendMail = async (message: Message): Promise<void> => void this.mails.push(message);
    const targets = {
      webhook: createWebhookTarget(post, () => this.nowMs),
      alertmanager: createAlertmanagerTarget(post),
      email: createEmailTarget(sendMail),
      mqtt: { send: async () => failed("no broker") },
    };
    const now = () => this.nowMs;
    this.dispatcher = new EventDispatcher({ database, encryptor, targets, now, random: () => 0.5, timeoutMs });
    return this.dispatcher;
  }

  receiver(hostname: string): Receiver {
    const receiver = this.#receivers.get(hostname) ?? new Receiver();
    this.#receivers.set(hostname, receiver);
    return receiver;
  }

  /** Polls once and waits for the deliveries. */
  async step(advanceMs = 0): Promise<void> {
    this.nowMs += advanceMs;
    await this.dispatcher.poll();
    await this.dispatcher.idle();
  }

  readonly #fetch: Fetch = async (url, init) => {
    const { hostname } = new URL(url);
    const receiver = this.#receivers.get(hostname);
    if (receiver === undefined) {
      this.unreachable.push(url);
      throw new Error("Network connection lost.");
    }
    const text = String(init.body);
    receiver.requests.push({ url, headers: new Headers(init.headers), text });
    const event = (JSON.parse(text) as { data?: NetworkEvent }).data;
    const response = await receiver.respond(event as NetworkEvent);
    const location = response.headers.get("Location");
    // As a real network does.
    if (location === null || init.redirect === "manual") return response;
    return await this.#fetch(location, init);
  };
}

export const rowOf = async (id: string) => {
  const [row] = await database.select().from(subscriptions).where(sql`id = ${id}`);
  return row;
};
