import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Aedes } from "aedes";
import { connectAsync, type MqttClient } from "mqtt";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { BrokerLink } from "../../../src/programs/emulator/broker-link.ts";
import { EmulatorClient } from "../../../src/programs/emulator/emulator-client.ts";
import { JobFiles } from "../../../src/programs/emulator/job-files.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";

/** The controller publishes a command again until it has the result, so an agent may receive a command more than once. */
describe("a command", () => {
  let broker: Aedes;
  let brokerServer: Server;
  let controllerServer: HttpServer;
  let controllerUrl: string;
  let brokerUrl: string;
  let commander: MqttClient;
  let results: { job_number: string; status: string; data: Record<string, unknown> }[];

  beforeEach(async () => {
    broker = await Aedes.createBroker();
    brokerServer = createServer((socket) => broker.handle(socket));
    controllerServer = createHttpServer((_request, response) =>
      response.end(JSON.stringify({ access_token: "token", expires_in: 3_600 })),
    );
    for (const server of [brokerServer, controllerServer])
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    brokerUrl = `mqtt://127.0.0.1:${(brokerServer.address() as AddressInfo).port}`;
    controllerUrl = `http://127.0.0.1:${(controllerServer.address() as AddressInfo).port}`;
    commander = await connectAsync(brokerUrl);
    results = [];
    commander.on("message", (_topic, payload) => results.push(JSON.parse(payload.toString())));
    await commander.subscribeAsync("agent/a/result", { qos: 1 });
  });

  afterEach(async () => {
    await commander.endAsync(true);
    await new Promise<void>((resolve) => broker.close(resolve));
    brokerServer.close();
    controllerServer.close();
    controllerServer.closeAllConnections();
  });

  /** Publishes a command and returns its result. */
  const send = async (jobNumber: string, command: string) => {
    const before = results.length;
    await publish(jobNumber, command, 60_000);
    await until(() => results.length > before, 5_000);
    return results.at(-1);
  };
  const publish = (jobNumber: string, command: string, validMs: number) => {
    const expires_at = new Date(Date.now() + validMs).toISOString();
    const message = { job_number: jobNumber, command, expires_at };
    return commander.publishAsync("agent/a/command", JSON.stringify(message), { qos: 1 });
  };

  it("is executed once by the example agent, which repeats its result, and not at all after it has expired", async () => {
    const agent = spawn(process.execPath, [join(ROOT, "scripts/examples/agent.ts")], {
      env: { ...process.env, SERVICE_URL: controllerUrl, MQTT_URL: brokerUrl, AP_ID: "a", INTERVAL: "60" },
    });
    let output = "";
    for (const stream of [agent.stdout, agent.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    try {
      await until(() => output.includes("a reports every"));
      const first = await send("job-1", "interval 30");
      expect(first).toMatchObject({ job_number: "job-1", status: "done", data: { interval: 30 } });
      await send("job-2", "interval 40");
      expect(await send("job-1", "interval 30")).toEqual(first);
      await publish("job-3", "interval 50", -1_000);
      await commander.publishAsync("agent/a/command", "not JSON", { qos: 1 });
      expect(await send("job-4", "ping")).toMatchObject({ job_number: "job-4", data: { interval: 40 } });
      expect(results.map(({ job_number }) => job_number)).toEqual(["job-1", "job-2", "job-1", "job-4"]);
    } finally {
      const ended = new Promise((resolve) => agent.once("exit", resolve));
      agent.kill("SIGTERM");
      await ended;
    }
  });

  it("is executed once by an emulated access point, even across a restart of the emulator", async () => {
    const folder = mkdtempSync(join(tmpdir(), "commands-"));
    const agent = { ap_id: "a", password: "no secret", latitude: 51, longitude: -2 };
    const spec = { access_point_type: "WiFi" as const, num_devices: 1, duration: 600, agents: [agent] };
    const part = { job_number: "00000001", part: 1, parts: 1, emulators: [spec] };
    const files = new JobFiles(folder);
    /** Runs the part in a new emulator, without any state in memory, until `work` is done. */
    const withEmulator = async (work: () => Promise<void>): Promise<void> => {
      vi.resetModules();
      const { runPart } = await import("../../../src/programs/emulator/part-runner.ts");
      const stop = new AbortController();
      const controller = new EmulatorClient({ url: controllerUrl, appName: "emulator", apiKey: "no secret" });
      const options = { url: brokerUrl, clientId: "emulator", controller, signal: stop.signal };
      const link = new BrokerLink(options);
      await link.connect();
      const running = runPart({ part, emulatorId: "e", controller, link, files, signal: stop.signal });
      try {
        await until(() => files.progress(part) !== undefined);
        await work();
      } finally {
        stop.abort();
        await running;
        await link.close();
      }
    };
    const isOn = () => files.progress(part)?.sites[0]?.accessPoints[0]?.controls.powered;
    try {
      let first: unknown;
      await withEmulator(async () => {
        first = await send("job-1", "power_off");
        expect(first).toMatchObject({ job_number: "job-1", status: "done" });
        await send("job-2", "power_on");
      });
      expect(isOn()).toBe(true);
      await withEmulator(async () => {
        expect(await send("job-1", "power_off")).toEqual(first);
        await publish("job-3", "power_off", -1_000);
        await send("job-4", "unknown");
      });
      expect(isOn()).toBe(true);
      expect(results.map(({ job_number }) => job_number)).not.toContain("job-3");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
