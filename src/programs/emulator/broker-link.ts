import type { MqttClient } from "mqtt";
import { SPINUP_TOPIC } from "../../broker/topics.ts";
import { KEEP_ALIVE_S } from "../bridge/subscriber.ts";
import { connectToNodes } from "../shared/broker-nodes.ts";
import { print } from "../shared/cli.ts";
import type { EmulatorClient } from "./emulator-client.ts";

/** One broker connection for all emulated access points. After a reconnect it sends unacknowledged messages again. */

export interface BrokerLinkOptions {
  /** The URL of the broker, or of its nodes, separated by commas. */
  url: string;
  clientId: string;
  controller: EmulatorClient;
  signal: AbortSignal;
  /** If the broker acknowledges nothing for this long, the link reconnects. */
  timeoutMs?: number;
}

export type CommandHandler = (payload: Buffer) => void;

const RECONNECT_MS = 500;
const RETRY_LOGIN_MS = 5_000;
/** Beyond this limit, samples that are taken during a broker outage are dropped. */
const MAX_UNACKNOWLEDGED = 100_000;
const TIMEOUT_MS = 20_000;

export class BrokerLink {
  readonly #options: BrokerLinkOptions;
  readonly #commandHandlers = new Map<string, CommandHandler>();
  #client: MqttClient | undefined;
  #nextLogin: ReturnType<typeof setTimeout> | undefined;
  #unacknowledged = 0;
  /** When the current wait for an acknowledgement began. */
  #waitingSinceMs = 0;
  #watchdog: ReturnType<typeof setInterval> | undefined;
  onSpinup: (payload: Buffer) => void = () => {};

  constructor(options: BrokerLinkOptions) {
    this.#options = options;
  }

  async connect(): Promise<void> {
    const { url, clientId, controller } = this.#options;
    const password = await this.#logIn();
    const client = connectToNodes(url, {
      clientId,
      username: controller.appName,
      password,
      reconnectPeriod: RECONNECT_MS,
      keepalive: KEEP_ALIVE_S,
      // A broker that has just started rejects every client until it has fetched the controller's keys.
      reconnectOnConnackError: true,
      // Connect only after all handlers are set: the broker sends stored messages right after it accepts the connection.
      manualConnect: true,
    });
    this.#client = client;
    client.on("error", (error) => print(`Broker error: ${error.message}`));
    client.on("message", (topic, payload) => this.#dispatch(topic, payload));
    const subscribed = new Promise<void>((resolve) => {
      client.on("connect", () => {
        // If the connection breaks meanwhile, the next one subscribes again.
        const subscribing = client.subscribeAsync([SPINUP_TOPIC, "agent/+/command"], { qos: 1 });
        subscribing.then(
          () => resolve(),
          () => {},
        );
      });
    });
    client.connect();
    this.#watch(client, this.#options.timeoutMs ?? TIMEOUT_MS);
    await Promise.race([
      subscribed,
      new Promise((resolve) => this.#options.signal.addEventListener("abort", resolve, { once: true })),
    ]);
  }

  /** Sets, or with undefined removes, the handler of the commands to an access point. */
  handleCommands(apId: string, handler: CommandHandler | undefined): void {
    if (handler === undefined) this.#commandHandlers.delete(apId);
    else this.#commandHandlers.set(apId, handler);
  }

  /** Publishes with QoS 1, and calls `onAcknowledged` when the broker has acknowledged the message. */
  publish(topic: string, message: object, onAcknowledged: () => void = () => {}): void {
    if (this.#client === undefined || this.#unacknowledged >= MAX_UNACKNOWLEDGED) return;
    if (this.#unacknowledged++ === 0) this.#waitingSinceMs = Date.now();
    this.#client.publish(topic, JSON.stringify(message), { qos: 1 }, (error) => {
      this.#unacknowledged--;
      this.#waitingSinceMs = Date.now();
      if (!error) onAcknowledged();
    });
  }

  async close(): Promise<void> {
    clearTimeout(this.#nextLogin);
    clearInterval(this.#watchdog);
    await this.#client?.endAsync(!this.#client.connected);
  }

  /**
   * Reconnects if an acknowledgement does not arrive. After a reconnect the MQTT client first sends all unacknowledged messages, and
   * subscribes only when the broker has acknowledged them. If one acknowledgement got lost on a working connection, the client would
   * wait forever and receive nothing.
   */
  #watch(client: MqttClient, timeoutMs: number): void {
    this.#watchdog = setInterval(() => {
      if (!client.connected || this.#unacknowledged === 0 || Date.now() - this.#waitingSinceMs < timeoutMs) return;
      this.#waitingSinceMs = Date.now();
      client.stream.destroy();
    }, timeoutMs / 4);
    this.#watchdog.unref();
  }

  #dispatch(topic: string, payload: Buffer): void {
    const [, apId] = /^agent\/([^/]+)\/command$/.exec(topic) ?? [];
    if (apId === undefined) this.onSpinup(payload);
    else this.#commandHandlers.get(apId)?.(payload);
  }

  /**
   * Logs in, and again at half of the token's lifetime. The broker closes a connection when its token expires; the next connection uses
   * the new token.
   */
  async #logIn(): Promise<string> {
    const { token, lifetimeMs } = await this.#options.controller.logIn();
    if (this.#client !== undefined) this.#client.options.password = token;
    this.#logInAfter(lifetimeMs / 2);
    return token;
  }

  #logInAfter(ms: number): void {
    this.#nextLogin = setTimeout(() => void this.#logIn().catch(() => this.#logInAfter(RETRY_LOGIN_MS)), ms);
    this.#nextLogin.unref();
  }
}
