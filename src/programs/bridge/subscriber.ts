import { connect, type IPublishPacket } from "mqtt";
import { print } from "../shared/cli.ts";

/** Receives messages from the broker and acknowledges each one only when its receiver says so. */

export interface Incoming {
  topic: string;
  /** The broker stored the message earlier and sends it to every new subscriber. */
  isRetained: boolean;
  payload: Buffer;
  receivedMs: number;
  acknowledge(): void;
}

export interface SubscribeOptions {
  url: string;
  username: string;
  password: string;
  /** The broker keeps messages for this id while its client is disconnected. */
  clientId: string;
  topics: string[];
  /** Either side notices after one and a half times this long that the other is gone. */
  keepaliveS?: number;
  /** Stops the subscriber. Received messages can still be acknowledged until `drained` resolves. */
  signal: AbortSignal;
  drained(): Promise<void>;
  /** If this returns a promise, the subscriber reads no further message until it resolves. */
  onMessage(message: Incoming): Promise<void> | undefined;
}

/** The bridge and the emulator print this line when the broker keeps messages for them. The stack waits for it. */
export const LISTENING = "Listening.";

/** A silently lost connection is noticed within twice this time. */
export const KEEP_ALIVE_S = 10;

/** The MQTT client does not acknowledge a message if its handler returns an error, and continues with the next message. */
const NOT_YET = new Error("Not acknowledged yet");

/** Receives messages until the connection closes. */
export async function subscribe({
  url,
  topics,
  keepaliveS = KEEP_ALIVE_S,
  signal,
  drained,
  onMessage,
  ...options
}: SubscribeOptions): Promise<void> {
  signal.throwIfAborted();
  // Connect only after all handlers are set: the broker sends stored messages right after it accepts the connection.
  const client = connect(url, {
    ...options,
    clean: false,
    reconnectPeriod: 0,
    connectTimeout: 5_000,
    keepalive: keepaliveS,
    manualConnect: true,
  });
  const connected = new Promise<void>((resolve, reject) => {
    client.once("connect", () => resolve());
    client.once("error", reject);
    client.once("close", () => reject(new Error("the broker closed the connection")));
  });
  const closed = new Promise<void>((resolve) => client.once("close", resolve));
  client.on("error", () => client.end(true));
  client.handleMessage = (packet: IPublishPacket, done) => {
    // Without `done` the client reads no further message. The broker delivers this one again.
    if (signal.aborted) return;
    const room = onMessage({
      topic: packet.topic,
      isRetained: packet.retain,
      payload: Buffer.from(packet.payload),
      receivedMs: Date.now(),
      acknowledge: () => acknowledge(packet),
    });
    const outcome = packet.qos === 0 ? undefined : NOT_YET;
    if (room === undefined) done(outcome);
    else void keepAliveUntil(room).then(() => done(outcome));
  };
  /** While the client reads nothing, it does not see the broker's ping responses. Sends pings, and resets the client's timeout. */
  const keepAliveUntil = async (room: Promise<void>): Promise<void> => {
    const pings = setInterval(
      () => {
        if (!client.connected) return;
        client.sendPing();
        client.reschedulePing(true);
      },
      (keepaliveS * 1000) / 2,
    );
    await room.finally(() => clearInterval(pings));
  };
  // The client has no public method to acknowledge later. A message id is valid on its connection only: after a reconnect the broker
  // delivers the message again.
  const acknowledge = ({ qos, messageId }: IPublishPacket): void => {
    if (qos === 0 || !client.connected) return;
    (client as unknown as { _sendPacket(packet: object): void })._sendPacket({
      cmd: "puback",
      messageId,
      reasonCode: 0,
    });
  };

  signal.addEventListener("abort", () => void drained().then(() => client.end(true)), { once: true });
  client.connect();
  await connected;
  await client.subscribeAsync(topics, { qos: 1 });
  print(LISTENING);
  await closed;
}
