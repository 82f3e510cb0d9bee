import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { networkServices } from "../../../src/programs/stack/components/worker-production.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";

/** Not by `import`: vitest resolves the default export of this package in another way than Node. */
const { default: WORKERD } = createRequire(import.meta.url)("workerd") as { default: string };

/** Returns the status with which a receiver responds to a request through the network of webhooks, or 599. */
const WORKER = `export default {
  async fetch(request, env) {
    const url = new URL(request.url).searchParams.get("url");
    if (url === null) return new Response();
    try {
      const response = await env.WEBHOOKS.fetch(url, { method: "POST", redirect: "manual" });
      await response.body?.cancel();
      return new Response(String(response.status));
    } catch {
      return new Response("599");
    }
  },
};`;

describe.each([
  { setting: "public", allowsPrivate: false },
  { setting: "private", allowsPrivate: true },
])("the network of webhooks with WEBHOOK_NETWORKS=$setting", ({ setting, allowsPrivate }) => {
  const folder = mkdtempSync(join(tmpdir(), "webhooks-"));
  const requests: string[] = [];
  let receiver: Server;
  let port: number;
  let url: string;
  let end: () => Promise<unknown>;

  beforeAll(async () => {
    receiver = createServer((request, response) => {
      requests.push(request.url ?? "");
      if (request.url === "/redirect") response.writeHead(307, { Location: `http://127.0.0.1:${port}/secret` }).end();
      else response.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    ({ port } = receiver.address() as AddressInfo);
    const ownPort = await anyFreePort();
    url = `http://127.0.0.1:${ownPort}/`;
    writeFileSync(join(folder, "worker.js"), WORKER);
    writeFileSync(
      join(folder, "workerd.capnp"),
      `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "test", worker = .test), ${networkServices({ WEBHOOK_NETWORKS: setting }).join(", ")}],
  sockets = [(name = "http", address = "127.0.0.1:${ownPort}", http = (), service = "test")],
);
const test :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-08-15",
  bindings = [(name = "WEBHOOKS", service = "webhooks")],
);
`,
    );
    const child = spawn(WORKERD, ["serve", join(folder, "workerd.capnp")], { stdio: "ignore" });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    end = () => {
      child.kill("SIGKILL");
      return ended;
    };
    await until(async () => (await fetch(url).catch(() => undefined))?.ok === true, 30_000);
  });

  afterAll(async () => {
    await end();
    receiver.close();
    receiver.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });

  const post = async (target: string): Promise<number> =>
    Number(await (await fetch(`${url}?url=${encodeURIComponent(target)}`)).text());

  it.each(["127.0.0.1", "localhost", hostname(), "[::ffff:127.0.0.1]", "0.0.0.0"])(
    "reaches %s only if it allows private addresses, also behind a name",
    async (host) => {
      requests.length = 0;
      const status = await post(`http://${host}:${port}/`);
      // Not every machine routes these two to itself.
      if (!allowsPrivate || !["0.0.0.0", "[::ffff:127.0.0.1]"].includes(host)) {
        expect([status, requests.length]).toEqual(allowsPrivate ? [200, 1] : [599, 0]);
      }
    },
  );

  it("does not follow redirects", async () => {
    requests.length = 0;
    expect(await post(`http://127.0.0.1:${port}/redirect`)).toBe(allowsPrivate ? 307 : 599);
    expect(requests).toEqual(allowsPrivate ? ["/redirect"] : []);
  });
});

describe("the Worker's own network", () => {
  const own = (env: Record<string, string>) => networkServices(env)[0];

  it.each([
    { LIBSQL_URL: "libsql://accounts.example.com" },
    { CLICKHOUSE_URL: "http://10.0.0.1:8123,https://clickhouse.example.com" },
    { MQTT_URL: "WSS://broker.example.com" },
    { MQTT_URL: "mqtts://broker.example.com" },
  ])("has TLS with %j", (env) => expect(own(env)).toContain("trustBrowserCas"));

  it("reads no certificates if no setting needs them", () =>
    expect(own({ LIBSQL_URL: "http://127.0.0.1:1?authToken=x", MQTT_URL: "ws://127.0.0.1:2" })).not.toContain("Cas"));
});
