import type { EventType, NetworkEvent } from "../../schemas/events.ts";

/** A subscription as its target sees it, with the secrets in plain text. */
export interface Destination {
  id: string;
  name: string;
  address: string;
  /** The key of a webhook's signatures. */
  signingKey?: string | undefined;
  /** User name and password of the server, separated by a colon. */
  credentials?: string | undefined;
}

/** An event to send, and the id that it keeps over all attempts. */
export interface Message {
  id: string;
  event: NetworkEvent;
}

/** Whether a target has accepted a message. `isGone`: it will never accept one again. */
export type Outcome = { isDelivered: true } | Failure;
export interface Failure {
  isDelivered: false;
  /** For the owner of the subscription. */
  error: string;
  isGone?: boolean;
}

export const DELIVERED: Outcome = { isDelivered: true };
export const failed = (error: string): Failure => ({ isDelivered: false, error });

/** Delivers to one kind of target. An error that it throws is a failed connection. */
export interface Target {
  /** Events that the target has no use for are skipped. Default: it accepts all. */
  accepts?(type: EventType): boolean;
  /** How long events are gathered for one call. Default: each event has a call of its own. */
  gatherMs?: number;
  send(destination: Destination, messages: readonly [Message, ...Message[]], signal: AbortSignal): Promise<Outcome>;
}

/** The same for every attempt and every restart, so that a receiver recognises a repeated event. */
export const messageId = (eventId: number): string => `msg_${eventId}`;
