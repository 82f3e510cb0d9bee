import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeJwt } from "jose";
import { connectAsync, type MqttClient } from "mqtt";
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { until } from "../../scripts/harness/product.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { runScript } from "../support/run-script.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

const EFFECTIVE_MS = 5_000;

/** Grants of a running product: their changes must reach every open connection. */
describe("grants", () => {
  let product: Awaited<ReturnType<typeof sharedProduct>>;
  let service: ServiceClient;
  let admin: string;
  const password = `${SECRET_MARK} of a limited account`;
  const agent = `granted-${randomUUID()}`;

  beforeAll(async () => {
    product = await sharedProduct();
    service = new ServiceClient(product.url);
    admin = await service.tokenOf(ADMIN);
    const body = { ap_id: agent, password, configuration: {}, labels: { site: "uk/bristol" } };
    await service.post("/api/v1/agents/", admin, body);
  });

  const within = async (work: Promise<unknown>): Promise<string> =>
    await Promise.race([work.then(() => "closed"), sleep(EFFECTIVE_MS, "open", { ref: false })]);

  const closing = (client: MqttClient) => new Promise<void>((resolve) => client.once("close", () => resolve()));

  it("close a live stream and an idle job socket when one is revoked", async () => {
    const username = `${randomUUID()}@example.com`;
    const path = `/api/v1/users/${username}/grants`;
    await service.post("/api/v1/users/", admin, { username, password, roles: ["user"] });
    const grants = [{ role: "viewer", selector: "site=uk/*" }];
    expect((await service.send("PUT", path, admin, { grants })).status).toBe(200);
    const token = await service.tokenOf({ username, password });
    const range = `start_time=${new Date(Date.now() - 1_000).toISOString()}&end_time=${new Date(Date.now() + 600_000).toISOString()}`;
    const requested = await service.send(
      "POST",
      `/api/v1/agent_data/request_agent_data?agent_id=${agent}&${range}`,
      token,
    );
    const { job_number } = (await requested.json()) as { job_number: string };
    const sockets = [job_number, randomUUID()].map((job) => {
      const headers = { Authorization: `Bearer ${token}` };
      return new WebSocket(`${product.url.replace("http", "ws")}/api/v1/ws/${job}`, { headers });
    });
    await Promise.all(sockets.map((socket) => once(socket, "open")));
    const closed = Promise.all(sockets.map((socket) => once(socket, "close")));
    expect((await service.send("PUT", path, admin, { grants: [] })).status).toBe(200);
    // The Close frame arrives at once. workerd ends the connection only when the object sleeps.
    await until(() => sockets.every(({ readyState }) => readyState !== WebSocket.OPEN), EFFECTIVE_MS);
    for (const socket of sockets) socket.terminate();
    expect((await closed).map(([code]) => code as number)).toEqual([4403, 4403]);
  });

  it("disconnect an app from the broker when they limit it", async () => {
    const appName = `granted-${randomUUID()}`;
    const app = { app_name: appName, api_key: password, permissions: { broker: true } };
    await service.post("/api/v1/third_party_apps/", admin, app);
    const newToken = () => service.tokenOf({ username: appName, password }, "third_party_app");
    const connect = async (token: string) =>
      await connectAsync(`mqtt://127.0.0.1:${product.mqttPort}`, {
        username: appName,
        password: token,
        reconnectPeriod: 0,
      });
    const first = await newToken();
    const client = await connect(first);
    const closed = closing(client);
    const grants = [{ role: "operator", selector: "site=uk/*" }];
    const path = `/api/v1/third_party_apps/${appName}/grants`;
    expect((await service.send("PUT", path, admin, { grants })).status).toBe(200);
    expect(await within(closed)).toBe("closed");
    const next = await newToken();
    expect(decodeJwt<{ scope: string }>(next).scope).not.toContain("broker:use");
    const limited = await connect(next);
    await limited.subscribeAsync(`event/${appName}/+`);
    await expect(limited.subscribeAsync("#")).rejects.toThrow();
    await limited.endAsync();
    // The broker accepts the signature of the earlier token, and closes the connection when it compares the versions.
    const again = await connect(first).catch(() => undefined);
    if (again !== undefined) expect(await within(closing(again))).toBe("closed");
  });

  it("are shown and replaced by the admin command", async () => {
    const username = `${randomUUID()}@example.com`;
    const command = (...given: string[]) =>
      runScript("admin", ["grants", username, ...given], { DATA_DIR: product.dataDir });
    await service.post("/api/v1/users/", admin, { username, password, roles: ["user"] });
    expect((await command()).output).toContain("operates all access points");
    expect((await command("viewer:site=uk/*", "manager:site=uk/bath")).output).toMatch(
      /^viewer {3}site=uk\/\*\nmanager {2}site=uk\/bath\n/,
    );
    expect(await (await service.send("GET", `/api/v1/users/${username}/grants`, admin)).json()).toEqual({
      grants: [
        { role: "viewer", selector: "site=uk/*" },
        { role: "manager", selector: "site=uk/bath" },
      ],
    });
    expect(await command("viewer:site=")).toMatchObject({ code: 1 });
    expect(await command("viewer:@unknown")).toMatchObject({ code: 1 });
    expect((await command("none")).output).toContain("0 grants");
  });
});
