import type { AedesPublishPacket, Client, PublishPacket } from "aedes";

/** Where the broker keeps its sessions and messages: on its own disk, or in a Redis that several nodes share. */
export interface BrokerStore {
  /** Names this run of the broker. */
  id: string;
  /** The event emitter of aedes that reaches the clients of all nodes. Undefined if this node is the only one. */
  mq?: object;
  persistence: BrokerPersistence;
  sessions: Sessions;
  /** Prepares the sessions of earlier runs. Called when the broker exists, and before it accepts connections. */
  start(): Promise<void>;
  /** Returns the filter with which aedes subscribes a client to what the client has asked for. Undefined: it must reject that. */
  filterOf(client: Client, filter: string): string | undefined;
  /** Returns whether aedes may send a message to a client. Otherwise the store sends it from the client's queue. */
  forwards(client: Client, packet: AedesPublishPacket): boolean;
}

/** The part of the persistence that the broker itself uses. */
export interface BrokerPersistence {
  /** Prepares a client that connects. Must be called before the broker sends anything to it. */
  prepare(client: Client): Promise<void>;
  /** Resolves when the message is stored for all its subscribers. */
  storeBeforeAcknowledging(packet: PublishPacket): Promise<void>;
}

export interface Sessions {
  /** Records that a client connects, before the broker reads its session. Removes the oldest session of an agent that has too many. */
  open(clientId: string, isClean: boolean, connection: object): Promise<void>;
  /** Records that a connection has closed, unless a newer connection of the same client uses the session. */
  close(clientId: string, connection: object): Promise<void>;
  /** Returns the agents that have sessions. */
  owners(): Promise<Iterable<string>>;
  removeAgent(apId: string): Promise<void>;
}

export interface StoreEvents {
  /** Called when the store cannot write. From now on it loses what it is given. */
  onBroken(message: string): void;
  /** Called when the store works again. */
  onHealed(message: string): void;
  /** Closes the connection of a client, if this node has it. */
  disconnect(clientId: string): void;
  /** Returns whether a client may receive the messages of a topic or filter. */
  canReceive: CanReceive;
}

export type CanReceive = (client: Client, topic: string) => boolean;

export const SESSION_EXPIRY_MS = 10 * 60_000;

/** A topic filter of MQTT: `+` stands for a whole level, `#` is the last level. */
const FILTER = /^(?:(?:\+|[^+#/]*)\/)*(?:\+|#|[^+#/]+)$/;
export const isFilter = (text: string): boolean => FILTER.test(text);
