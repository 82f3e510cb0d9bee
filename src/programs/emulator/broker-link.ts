import { connect, type MqttClient } from "mqtt";
import { SPINUP_TOPIC } from "../../broker/topics.ts";
import { KEEP_ALIVE_S } from "../bridge/subscriber.ts";
import { print } from "../shared/cli.ts";
import type { EmulatorService } from "./emulator-client.ts";

/** One connection to the broker for all emulated access points. What was not acknowledged when it broke is sent again. */

export interface BrokerLinkOptions {
  url: string;
  clientId: string;
  service: EmulatorService;
  signal: AbortSignal;
  /** After so long without an acknowledgement that is due, the connection is given up for another one. */
  timeoutMs?: number;
}

export type CommandHandler = (payload: Buffer) => void;

const RECONNECT_MS = 500;
const RETRY_RENEWAL_MS = 5_000;
/** Beyond this, what is measured while the broker is away is not worth keeping. */
const MAX_UNACKNOWLEDGED = 100_000;
const TIMEOUT_MS = 20_000;

export class BrokerLink {
  readonly #options: BrokerLinkOptions;
  readonly #commands = new Map<string, CommandHandler>();
  #client: MqttClient | undefined;
  #renewing: ReturnType<typeof setTimeout> | undefined;
  #unacknowledged = 0;
  /** Since when nothing was acknowledged although something was due. */
  #waitingSinceMs = 0;
  #watching: ReturnType<typeof setInterval> | undefined;
  onSpinup: (payload: Buffer) => void = () => {};

  constructor(options: BrokerLinkOptions) {
    this.#options = options;
  }

  async connect(): Promise<void> {
    const { url, clientId, service } = this.#options;
    const password = await this.#renew();
    const client = connect(url, {
      ...{ clientId, username: service.appName, password, reconnectPeriod: RECONNECT_MS, keepalive: KEEP_ALIVE_S },
      // A broker that has just been started refuses everyone until it has the service's keys.
      reconnectOnConnackError: true,
      // Set up first, then connect: what the broker has to say comes right behind its greeting.
      manualConnect: true,
    });
    this.#client = client;
    client.on("error", (error) => print(`The broker: ${error.message}`));
    client.on("message", (topic, payload) => this.#take(topic, payload));
    const subscribed = new Promise<void>((resolve) => {
      client.on("connect", () => {
        // Where the connection breaks meanwhile, the next one tries again.
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

  /** Who hears the commands to an access point. */
  listen(apId: string, handler: CommandHandler | undefined): void {
    if (handler === undefined) this.#commands.delete(apId);
    else this.#commands.set(apId, handler);
  }

  /** Publishes with QoS 1; `onTaken` hears when the broker has it. */
  publish(topic: string, message: object, onTaken: () => void = () => {}): void {
    if (this.#client === undefined || this.#unacknowledged >= MAX_UNACKNOWLEDGED) return;
    if (this.#unacknowledged++ === 0) this.#waitingSinceMs = Date.now();
    this.#client.publish(topic, JSON.stringify(message), { qos: 1 }, (error) => {
      this.#unacknowledged--;
      this.#waitingSinceMs = Date.now();
      if (!error) onTaken();
    });
  }

  async close(): Promise<void> {
    clearTimeout(this.#renewing);
    clearInterval(this.#watching);
    await this.#client?.endAsync(!this.#client.connected);
  }

  /**
   * On a new connection the client first sends again what was not acknowledged, and subscribes only when all of that has been. Should
   * one acknowledgement get lost on the way, it would wait for ever on a connection that is otherwise fine, and hear nothing.
   */
  #watch(client: MqttClient, timeoutMs: number): void {
    this.#watching = setInterval(() => {
      if (!client.connected || this.#unacknowledged === 0 || Date.now() - this.#waitingSinceMs < timeoutMs) return;
      this.#waitingSinceMs = Date.now();
      client.stream.destroy();
    }, timeoutMs / 4);
    this.#watching.unref();
  }

  #take(topic: string, payload: Buffer): void {
    const [, apId] = /^agent\/([^/]+)\/command$/.exec(topic) ?? [];
    if (apId === undefined) this.onSpinup(payload);
    else this.#commands.get(apId)?.(payload);
  }

  /** The broker ends a connection with its token; the next one is made with a new one. */
  async #renew(): Promise<string> {
    const { token, lifetimeMs } = await this.#options.service.logIn();
    if (this.#client !== undefined) this.#client.options.password = token;
    this.#renewIn(lifetimeMs / 2);
    return token;
  }

  #renewIn(ms: number): void {
    this.#renewing = setTimeout(() => void this.#renew().catch(() => this.#renewIn(RETRY_RENEWAL_MS)), ms);
    this.#renewing.unref();
  }
}
