import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { connectAsync } from "mqtt";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../scripts/harness/product.ts";
import { events } from "../../src/events/event-tables.ts";
import type { NewSubscription, Subscription } from "../../src/schemas/subscriptions.ts";
import { createDatabase } from "../../src/storage/libsql.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { ServiceClient } from "../support/service-client.ts";

const BASE = "/api/v1/subscriptions/";

interface Received {
  headers: Record<string, string>;
  body: string;
}

/** Receivers on this machine. Each path behaves in its own way. */
class Receivers {
  readonly received = new Map<string, Received[]>();
  readonly #server: Server;
  bytesSent = 0;

  constructor() {
    this.#server = createServer((request, response) => void this.#respond(request, response));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  of(path: string): Received[] {
    return this.received.get(path) ?? [];
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    this.received.set(path, [...this.of(path), { headers, body: await text(request) }]);
    if (path === "/hang") return;
    if (path === "/500") response.writeHead(500).end("x".repeat(1_000));
    else if (path === "/redirect") response.writeHead(302, { Location: "http://127.0.0.1:1/" }).end();
    else if (path === "/huge") this.#sendMuch(response);
    else response.end("ok");
  }

  /** Sends up to 1 GB. */
  #sendMuch(response: ServerResponse): void {
    const chunk = Buffer.alloc(64 * 1024);
    response.on("error", () => {});
    const send = (): void => {
      while (this.bytesSent < 1e9 && !response.destroyed) {
        this.bytesSent += chunk.length;
        if (!response.write(chunk)) return void response.once("drain", send);
      }
      response.end();
    };
    send();
  }
}

const EVENTS = 20;
const DELIVERED_WITHIN_MS = 20_000;
const idIn = (body: string): number => (JSON.parse(body) as { data: { id: number } }).data.id;

describe("subscriptions of npm start", () => {
  const receivers = new Receivers();
  const ids: string[] = [];
  let base: string;
  let service: ServiceClient;
  let token: string;
  let mqttPort: number;
  let database: ReturnType<typeof createDatabase>;

  beforeAll(async () => {
    const product = await sharedProduct();
    base = await receivers.listen();
    ({ mqttPort } = product);
    service = new ServiceClient(product.url);
    token = await service.tokenOf(ADMIN);
    database = createDatabase({ url: product.urls.libsql ?? "" });
  });

  afterAll(async () => {
    for (const id of ids) await service.send("DELETE", `${BASE}${id}`, token);
    receivers.close();
  });

  const subscribe = async (target: object): Promise<NewSubscription> => {
    const body = { name: "Test", target, filter: { types: ["component.down"] } };
    const subscription = (await service.post(BASE, token, body)) as NewSubscription;
    ids.push(subscription.id);
    return subscription;
  };
  const read = async (id: string) => (await (await service.send("GET", `${BASE}${id}`, token)).json()) as Subscription;
  const addEvent = async (apId: string): Promise<number> => {
    const row = {
      at: new Date(),
      type: "component.down",
      severity: "critical",
      apId,
      data: { component: "x" },
    } as const;
    const [event] = await database.insert(events).values(row).returning({ id: events.id });
    return event?.id ?? 0;
  };

  it("deliver signed webhooks, whatever other receivers do", async () => {
    const { secret } = await subscribe({ kind: "webhook", address: `${base}/good` });
    const bad = new Map<string, string>();
    for (const path of ["/500", "/hang", "/redirect", "/huge"])
      bad.set(path, (await subscribe({ kind: "webhook", address: `${base}${path}` })).id);
    for (let i = 0; i < EVENTS; i++) {
      const id = await addEvent(`ap-${i % 4}`);
      const find = () => receivers.of("/good").find(({ body }) => idIn(body) === id);
      await until(() => find() !== undefined, DELIVERED_WITHIN_MS);
      const { headers, body } = find() ?? { headers: {}, body: "" };
      expect(new Webhook(secret ?? "").verify(body, headers)).toMatchObject({ type: "component.down", data: { id } });
    }
    await until(async () => (await read(bad.get("/hang") ?? "")).last_error !== null, 20_000);
    const errors = await Promise.all(Array.from(bad.values(), async (id) => (await read(id)).last_error));
    expect(errors).toEqual(["HTTP 500", "No response within 10000 ms", "HTTP 302: redirects are not followed", null]);
    expect(receivers.bytesSent).toBeLessThan(300e6);
    expect(receivers.of("/huge").length).toBeGreaterThanOrEqual(EVENTS);
  });

  it("reach the owner over MQTT", async () => {
    const { id, target } = await subscribe({ kind: "mqtt" });
    const options = { username: ADMIN.username, password: token, reconnectPeriod: 0 };
    const client = await connectAsync(`mqtt://127.0.0.1:${mqttPort}`, options);
    try {
      const received: unknown[] = [];
      client.on("message", (_topic, payload) => received.push(JSON.parse(payload.toString())));
      await client.subscribeAsync(target.address, { qos: 1 });
      const tested = await service.send("POST", `${BASE}${id}/test`, token);
      expect(await tested.json()).toEqual({ delivered: true, error: null });
      const eventId = await addEvent("ap-1");
      await until(() => received.some((event) => (event as { id: number }).id === eventId), DELIVERED_WITHIN_MS);
      expect(received[0]).toMatchObject({ type: "subscription.test" });
    } finally {
      await client.endAsync(true);
    }
  });
});
