import type * as z from "zod";
import type { Ack } from "../../schemas/primitives.ts";
import type {
  NewSubscription,
  Subscription,
  SubscriptionCreate,
  SubscriptionTest,
  SubscriptionUpdate,
} from "../../schemas/subscriptions.ts";
import { call, pathTo, V1 } from "./call.ts";

/** The API operations on subscriptions: who is notified of which events. */

export type NewSubscriptionInput = z.input<typeof SubscriptionCreate>;
export type SubscriptionChange = z.input<typeof SubscriptionUpdate>;

const MAX_SUBSCRIPTIONS = 1_000;

export const listSubscriptions = (signal?: AbortSignal): Promise<Subscription[]> =>
  call("GET", `${V1}/subscriptions/`, { query: { limit: MAX_SUBSCRIPTIONS }, signal });
export const createSubscription = (body: NewSubscriptionInput): Promise<NewSubscription> =>
  call("POST", `${V1}/subscriptions/`, { body });
export const updateSubscription = (id: string, body: SubscriptionChange): Promise<Subscription> =>
  call("PUT", pathTo("subscriptions", id), { body });
export const deleteSubscription = (id: string): Promise<Ack> => call("DELETE", pathTo("subscriptions", id));
export const testSubscription = (id: string): Promise<SubscriptionTest> =>
  call("POST", pathTo("subscriptions", id, "test"));
export const resumeSubscription = (id: string): Promise<Subscription> =>
  call("POST", pathTo("subscriptions", id, "resume"));
export const replaceSecret = (id: string): Promise<NewSubscription> =>
  call("POST", pathTo("subscriptions", id, "rotate_secret"));
