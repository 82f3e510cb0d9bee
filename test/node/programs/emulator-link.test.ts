import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect as connectSocket, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectAsync, type MqttClient } from "mqtt";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { createSite } from "../../../src/emulator/models/site.ts";
import { BrokerLink } from "../../../src/programs/emulator/broker-link.ts";
import { EmulatorClient } from "../../../src/programs/emulator/emulator-client.ts";
import { JobFiles } from "../../../src/programs/emulator/job-files.ts";
import { runPart } from "../../../src/programs/emulator/part-runner.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { TokenIssuer } from "../../support/token-issuer.ts";

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;

describe("the emulator", () => {
  const supervisor = new Supervisor();
  const folder = mkdtempSync(join(tmpdir(), "emulator-link-"));
  const clients: MqttClient[] = [];
  let issuer: TokenIssuer;
  /** Responds to logins, but not to reports. */
  let service: Server;
  let controller: EmulatorClient;
  let port: number;
  let webSocketPort: number;

  beforeAll(async () => {
    issuer = await TokenIssuer.start();
    issuer.isAvailable = false;
    const { component, tcpPort, wsPort } = await issuer.broker(folder);
    [port, webSocketPort] = [tcpPort, wsPort];
    await supervisor.start(component);
  });

  beforeEach(async () => {
    const token = await issuer.signForApp("emulator");
    service = createServer((request, response) => {
      if (request.url?.includes("/token/")) response.end(JSON.stringify({ access_token: token, expires_in: 60 }));
    });
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${portOf(service)}`;
    controller = new EmulatorClient({ url, appName: "emulator", apiKey: "no secret" });
  });
  const closeService = (): void => {
    service.close();
    service.closeAllConnections();
  };
  afterEach(closeService);

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.endAsync(true)));
    await supervisor.stop();
    issuer.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const linkTo = (brokerPort: number, options: { signal?: AbortSignal; timeoutMs?: number } = {}): BrokerLink =>
    new BrokerLink({
      url: `mqtt://127.0.0.1:${brokerPort}`,
      clientId: "emulator",
      controller,
      signal: new AbortController().signal,
      ...options,
    });
  const connectBridge = async (): Promise<MqttClient> => {
    const options = { username: "bridge", password: await issuer.signForApp("bridge"), reconnectPeriod: 0 };
    const client = await connectAsync(`mqtt://127.0.0.1:${port}`, options);
    clients.push(client.on("error", () => {}));
    return client;
  };

  // The first test: once the broker has the keys, it keeps them.
  it("connects to a broker that has to wait for the controller's keys", async () => {
    const link = linkTo(port);
    try {
      const connected = link.connect();
      await until(() => issuer.rejections > 0);
      issuer.isAvailable = true;
      await connected;
    } finally {
      await link.close();
    }
  });

  it("connects again if the broker does not acknowledge a message", async () => {
    issuer.isAvailable = true;
    let connections = 0;
    // Drops the acknowledgements of the broker on the first connection.
    const proxy = createTcpServer((client) => {
      const number = ++connections;
      const broker = connectSocket(port, "127.0.0.1");
      client.pipe(broker);
      broker.on("data", (bytes) => {
        if (number > 1 || bytes[0] !== 0x40) client.write(bytes);
      });
      for (const [one, other] of [
        [client, broker],
        [broker, client],
      ] as const)
        one.on("error", () => {}).on("close", () => other.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const link = linkTo(portOf(proxy), { timeoutMs: 400 });
    try {
      await link.connect();
      link.publish("agent/a/data", {});
      let received = "";
      link.handleCommands("a", (payload) => {
        received = payload.toString();
      });
      await until(() => connections > 1);
      const publisher = await connectBridge();
      await until(async () => {
        await publisher.publishAsync("agent/a/command", "reboot", { qos: 1 });
        return received === "reboot";
      });
    } finally {
      await link.close();
      proxy.close();
    }
  });

  it("connects to the nodes of a broker that are available", async () => {
    issuer.isAvailable = true;
    const link = new BrokerLink({
      url: `mqtt://127.0.0.1:9,ws://127.0.0.1:9/mqtt, ws://127.0.0.1:${webSocketPort}`,
      ...{ clientId: "emulator", controller, signal: new AbortController().signal },
    });
    try {
      await link.connect();
      const acknowledged = Promise.withResolvers<void>();
      link.publish("agent/a/data", {}, acknowledged.resolve);
      await acknowledged.promise;
    } finally {
      await link.close();
    }
  });

  it("receives commands for a part of an earlier run before the controller accepts its claim", async () => {
    issuer.isAvailable = true;
    const stop = new AbortController();
    const { signal } = stop;
    const link = linkTo(port, { signal });
    const agent = { ap_id: "begun", password: "no secret", latitude: 51, longitude: -2 };
    const spec = { access_point_type: "WiFi" as const, num_devices: 1, duration: 60, agents: [agent] };
    const part = { job_number: "00000001", part: 1, parts: 1, emulators: [spec] };
    const accessPoints = [{ apId: "begun", technology: "WiFi" as const, numDevices: 1 }];
    const files = new JobFiles(join(folder, "begun"));
    files.save(part, { startedMs: Date.now(), samples: 1, sites: [createSite({ longitudeDeg: -2, accessPoints }, 1)] });
    const running = runPart({ part, emulatorId: "e", controller, link, files, signal });
    try {
      await link.connect();
      const publisher = await connectBridge();
      const results: unknown[] = [];
      publisher.on("message", (_topic, payload) => results.push(JSON.parse(payload.toString())));
      await publisher.subscribeAsync("agent/begun/result", { qos: 1 });
      const expires_at = new Date(Date.now() + 60_000).toISOString();
      const command = { job_number: "00000002", command: "power_off", expires_at };
      await publisher.publishAsync("agent/begun/command", JSON.stringify(command), { qos: 1 });
      await until(() => results.length > 0);
      expect(results).toMatchObject([{ job_number: "00000002", status: "done" }]);
    } finally {
      stop.abort();
      // Ends the report that waits for its response.
      closeService();
      await running;
      await link.close();
    }
  });
});
