import type { RateLimiter } from "../accounts/login/rate-limiter.ts";
import type { Encryptor } from "../auth/encryptor.ts";
import type { Actor } from "../auth/identity.ts";
import { type Action, authorize, authorizeSubscription, canAccessAny } from "../auth/permissions.ts";
import { randomSigningKey } from "../auth/secrets.ts";
import { openSecrets, sealSecrets } from "../events/subscription-secrets.ts";
import type { ListedSubscription, SubscriptionChanges, SubscriptionStore } from "../events/subscription-store.ts";
import type { Selectors } from "../fleet/selectors.ts";
import { Invalid, NotFound } from "../lib/errors.ts";
import { parseSelector } from "../lib/selectors.ts";
import type {
  NewSubscription,
  Subscription,
  SubscriptionCreate,
  SubscriptionFilter,
  SubscriptionsQuery,
  SubscriptionTest,
  SubscriptionUpdate,
  TargetSpec,
} from "../schemas/subscriptions.ts";
import { resolveTarget } from "./target-address.ts";

/** Subscriptions to events. Each user and app has its own; administrators have access to all. */
export interface Subscriptions {
  list(actor: Actor, page: SubscriptionsQuery): Promise<Subscription[]>;
  /** Only this result and that of `rotateSecret` contain the key of a webhook's signatures. */
  create(actor: Actor, subscription: SubscriptionCreate): Promise<NewSubscription>;
  read(actor: Actor, id: string): Promise<Subscription>;
  update(actor: Actor, id: string, changes: SubscriptionUpdate): Promise<Subscription>;
  rotateSecret(actor: Actor, id: string): Promise<NewSubscription>;
  /** Sends an event to the target and returns whether it accepted it. */
  test(actor: Actor, id: string): Promise<SubscriptionTest>;
  resume(actor: Actor, id: string): Promise<Subscription>;
  delete(actor: Actor, id: string): Promise<void>;
}

export interface SubscriptionsOptions {
  store: SubscriptionStore;
  encryptor: Encryptor;
  selectors: Selectors;
  rateLimiter: Pick<RateLimiter, "take">;
  testDelivery: (id: string) => Promise<SubscriptionTest>;
  /** Lets the delivery notice a change, in the background. */
  wakeNotifier: () => void;
  /** Whether webhooks may have addresses of private networks and of this machine. */
  allowsPrivate: boolean;
}

const MAX_TESTS_PER_MINUTE = 10;

export function createSubscriptions(options: SubscriptionsOptions): Subscriptions {
  const { store, encryptor, selectors, rateLimiter, testDelivery, wakeNotifier, allowsPrivate } = options;
  const checkFilter = async (actor: Actor, { selector }: SubscriptionFilter): Promise<void> => {
    await selectors.resolve(actor, parseSelector(selector), { place: "body", loc: ["filter", "selector"] });
  };
  const find = async (actor: Actor, action: Action, id: string): Promise<ListedSubscription> => {
    authorize(actor, action);
    const row = await store.find(id);
    authorizeSubscription(actor, action, row);
    return row;
  };
  const current = async (id: string): Promise<Subscription> => {
    const row = await store.find(id);
    if (row === undefined) throw new NotFound("Subscription");
    return toSubscription(row);
  };
  /** Returns what changes if the target has another address or other credentials. */
  const targetChanges = async (actor: Actor, row: ListedSubscription, target: TargetSpec) => {
    const { id, owner, kind, address: oldAddress } = row;
    if (target.kind !== kind) {
      const msg = "Value error, the kind cannot change. Create another subscription";
      throw new Invalid([{ loc: ["target", "kind"], type: "value_error", msg }]);
    }
    const isManager = canAccessAny(actor, "subscriptions.update");
    const { address, credentials } = resolveTarget(target, { id, owner, isManager, allowsPrivate, oldAddress });
    if (address === oldAddress && credentials === undefined) return undefined;
    // The credentials of the old address must not reach a new one.
    const { signingKey } = await openSecrets(encryptor, row);
    const sealedSecret = await sealSecrets(encryptor, id, { signingKey, credentials });
    return { address, sealedSecret, hasCredentials: credentials !== undefined };
  };

  return {
    async list(actor, page) {
      authorize(actor, "subscriptions.list");
      const ownerId = canAccessAny(actor, "subscriptions.list") ? undefined : actor.id;
      return (await store.list(page, ownerId)).map(toSubscription);
    },

    async create(actor, { name, filter, target }) {
      authorize(actor, "subscriptions.create");
      await checkFilter(actor, filter);
      const id = crypto.randomUUID();
      const { kind } = target;
      const isManager = canAccessAny(actor, "subscriptions.create");
      const { address, credentials } = resolveTarget(target, { id, owner: actor.name, isManager, allowsPrivate });
      const signingKey = kind === "webhook" ? randomSigningKey() : undefined;
      const sealedSecret = await sealSecrets(encryptor, id, { signingKey, credentials });
      const owner = {
        ownerId: actor.id,
        owner: actor.name,
        ownerKind: actor.kind === "app" ? ("app" as const) : ("user" as const),
      };
      const hasCredentials = credentials !== undefined;
      await store.insert({ id, name, filter, kind, address, sealedSecret, hasCredentials, ...owner }, actor);
      wakeNotifier();
      return { ...(await current(id)), secret: signingKey ?? null };
    },

    async read(actor, id) {
      return toSubscription(await find(actor, "subscriptions.read", id));
    },

    async update(actor, id, { name, filter, target }) {
      const row = await find(actor, "subscriptions.update", id);
      if (filter !== undefined) await checkFilter(actor, filter);
      const ofTarget = target && (await targetChanges(actor, row, target));
      const changes: SubscriptionChanges = { ...(name && { name }), ...(filter && { filter }), ...ofTarget };
      if (Object.keys(changes).length > 0) {
        await store.update(id, changes, actor, "change", ofTarget !== undefined);
        wakeNotifier();
      }
      return await current(id);
    },

    async rotateSecret(actor, id) {
      const row = await find(actor, "subscriptions.rotate_secret", id);
      if (row.kind !== "webhook") {
        const msg = "Value error, only webhooks have a secret";
        throw new Invalid([{ loc: ["id"], type: "value_error", msg }], "path");
      }
      const signingKey = randomSigningKey();
      const { credentials } = await openSecrets(encryptor, row);
      const sealedSecret = await sealSecrets(encryptor, id, { signingKey, credentials });
      await store.update(id, { sealedSecret }, actor, "rotate secret", false);
      wakeNotifier();
      return { ...(await current(id)), secret: signingKey };
    },

    async test(actor, id) {
      await find(actor, "subscriptions.test", id);
      await rateLimiter.take(`subscription_test:${actor.id}`, MAX_TESTS_PER_MINUTE);
      return await testDelivery(id);
    },

    async resume(actor, id) {
      await find(actor, "subscriptions.resume", id);
      await store.resume(id, actor);
      wakeNotifier();
      return await current(id);
    },

    async delete(actor, id) {
      await find(actor, "subscriptions.delete", id);
      await store.delete(id, actor);
    },
  };
}

const toSubscription = (row: ListedSubscription): Subscription => ({
  id: row.id,
  name: row.name,
  owner: row.owner,
  filter: row.filter,
  target: { kind: row.kind, address: row.address, has_credentials: row.hasCredentials },
  created_at: row.createdAt.toISOString(),
  cursor: row.cursor,
  backlog: row.backlog,
  delivered_at: row.deliveredAt?.toISOString() ?? null,
  last_error: row.lastError,
  failing_since: row.failingSince?.toISOString() ?? null,
  next_attempt_at: row.dueAt?.toISOString() ?? null,
  stopped_at: row.stoppedAt?.toISOString() ?? null,
});
