import { connect, type IPublishPacket } from "mqtt";
import { print } from "../shared/cli.ts";

/** Messages from the broker, each of which is acknowledged only when its taker says so. */

export interface Incoming {
  topic: string;
  /** It was said some time ago, and the broker tells it to whoever comes. */
  isRetained: boolean;
  payload: Buffer;
  receivedMs: number;
  acknowledge(): void;
}

export interface ListenOptions {
  url: string;
  username: string;
  password: string;
  /** The broker keeps what comes for this id while it is away. */
  clientId: string;
  topics: string[];
  /** Each side knows after so long, and half as long again, that the other is gone. */
  keepaliveS?: number;
  /** Stops the listening. What has been taken can still be acknowledged until `drained` comes true. */
  signal: AbortSignal;
  drained(): Promise<void>;
  /** What it returns, if anything, must come true before more messages are read. */
  onMessage(message: Incoming): Promise<void> | undefined;
}

/** Said when the broker knows what to keep for us; by the emulator, too. */
export const LISTENING = "Listening.";

/** A connection that has gone without a word is noticed within twice that. */
export const KEEP_ALIVE_S = 10;

/** To the client an error means that a message is not to be acknowledged; it goes on with the next one. */
const NOT_YET = new Error("Not acknowledged yet");

/** Listens until the connection ends. */
export async function listen({
  url,
  topics,
  keepaliveS = KEEP_ALIVE_S,
  signal,
  drained,
  onMessage,
  ...options
}: ListenOptions): Promise<void> {
  // Connected by hand, once everything is in place: what the broker has kept comes right behind its greeting.
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
  const ended = new Promise<void>((resolve) => client.once("close", resolve));
  client.on("error", () => client.end(true));
  client.handleMessage = (packet: IPublishPacket, done) => {
    // Left with the broker, which brings it again: not even the next one is asked for.
    if (signal.aborted) return;
    const room = onMessage({
      topic: packet.topic,
      isRetained: packet.retain,
      payload: Buffer.from(packet.payload),
      receivedMs: Date.now(),
      acknowledge: () => acknowledge(packet),
    });
    const answer = packet.qos === 0 ? undefined : NOT_YET;
    if (room === undefined) done(answer);
    else void unread(room).then(() => done(answer));
  };
  /** While nothing is read, neither are the broker's signs of life: it still gets ours, and is not taken for dead. */
  const unread = async (room: Promise<void>): Promise<void> => {
    const signs = setInterval(
      () => {
        if (!client.connected) return;
        client.sendPing();
        client.reschedulePing(true);
      },
      (keepaliveS * 1000) / 2,
    );
    await room.finally(() => clearInterval(signs));
  };
  // The client has no public way to acknowledge later. An id is good for its connection only; a new one brings the message again.
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
  await ended;
}
