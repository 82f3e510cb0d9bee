import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Aedes } from "aedes";
import { ClassicLevel } from "classic-level";
import { connectAsync, type MqttClient } from "mqtt";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { createRejectionLog } from "../../../src/programs/bridge/rejection-log.ts";
import { LISTENING } from "../../../src/programs/bridge/subscriber.ts";
import { DiskPersistence } from "../../../src/programs/broker/disk-persistence.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { FakeController, REQUEST_ID } from "../../support/fake-controller.ts";

describe("the bridge", () => {
  let folder: string;
  let level: ClassicLevel;
  let broker: Aedes;
  let brokerServer: Server;
  let controller: FakeController;
  let brokerUrl: string;
  let bridge: ChildProcess | undefined;
  let output: string;
  let agent: MqttClient;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "bridge-"));
    level = new ClassicLevel(folder);
    await level.open();
    const store = new DiskPersistence(level, "broker", () => true);
    broker = await Aedes.createBroker({
      id: "broker",
      persistence: store,
      authenticate: (client, _username, _password, done) => {
        store.prepare(client).then(() => done(null, true), done as never);
      },
      authorizePublish: (_client, packet, done) => {
        store.storeBeforeAcknowledging(packet).then(() => done(null), done);
      },
    });
    brokerServer = createServer((socket) => broker.handle(socket));
    await new Promise<void>((resolve) => brokerServer.listen(0, "127.0.0.1", resolve));
    brokerUrl = `mqtt://127.0.0.1:${(brokerServer.address() as AddressInfo).port}`;

    output = "";
    controller = await FakeController.start();
    agent = await connectAsync(brokerUrl, { clientId: "agent" });
  });

  afterEach(async () => {
    await stopBridge();
    await agent.endAsync(true);
    await new Promise<void>((resolve) => broker.close(resolve));
    brokerServer.close();
    controller.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const startBridge = async (MQTT_URL = brokerUrl): Promise<void> => {
    const child = spawn(process.execPath, [join(ROOT, "scripts/bridge.ts")], {
      env: {
        ...process.env,
        SERVICE_URL: controller.url,
        MQTT_URL,
        BRIDGE_KEY: "no secret",
        BRIDGE_ID: "test",
      },
    });
    bridge = child;
    const before = output.length;
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    await until(() => output.slice(before).includes(LISTENING));
  };
  const stopBridge = async (): Promise<void> => {
    if (bridge === undefined || bridge.exitCode !== null) return;
    const ended = new Promise((resolve) => bridge?.once("exit", resolve));
    bridge.kill("SIGTERM");
    await ended;
  };
  const publish = (topic: string, payload: string) => agent.publishAsync(topic, payload, { qos: 1 });
  const good = (n: number) => publish("agent/good/data", JSON.stringify({ payload: { n } }));
  /** Returns how many messages the broker still keeps for the bridge. */
  const queued = async () => (await level.keys({ gt: "outgoing:", lt: "outgoing;" }).all()).length;
  const linesWith = (text: string) => output.split("\n").filter((line) => line.includes(text));
  const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{"n":1}${"}".repeat(levels - 1)}`;

  it("rejects each bad message, and delivers the others in order", async () => {
    const bad: [topic: string, payload: string, reason: string][] = [
      ["agent/surrogate/data", '{"payload":{"text":"\\ud800"}}', "the controller responded with 500"],
      ["agent/deep/data", nested(31), "nested deeper than 29 levels"],
      ["agent/deep-result/result", `{"job_number":"x","data":${nested(30)}}`, "nested deeper than 29 levels"],
      ["agent/very-deep/data", nested(100_000), "nested deeper than 29 levels"],
      ["agent/controls/status", "\u0001".repeat(180_000), "larger than 1 MiB as JSON"],
      ["agent/broken/result", "{", "not JSON"],
      ["agent/a\nforged/data", "{}", "not a topic of an agent"],
    ];
    await startBridge();
    controller.override = (_messages, request) => (request === 1 ? { status: 503, headers: REQUEST_ID } : undefined);
    // The first delivery is retried, so that the others share a batch.
    await good(0);
    for (const [i, [topic, payload]] of bad.entries()) {
      await publish(topic, payload);
      await good(i + 1);
    }
    await until(() => controller.acceptedNumbers().length === bad.length + 1, 10_000);
    expect(controller.acceptedNumbers()).toEqual([0, ...bad.map((_, i) => i + 1)]);
    // The controller gets every rejection, and the broker delivers none of the messages again.
    await until(async () => (await queued()) === 0, 10_000);
    const byText = (a: string, b: string) => (a < b ? -1 : 1);
    const rejections = controller.accepted.flatMap(({ ap_id, error }) =>
      error === undefined ? [] : [`${ap_id}: ${error}`],
    );
    expect(rejections.toSorted(byText)).toEqual(
      bad
        .slice(0, -1)
        .map(([topic, , reason]) => `${topic.split("/")[1]}: ${reason}`)
        .toSorted(byText),
    );
    expect(linesWith("message rejected").toSorted(byText)).toEqual(
      bad.map(([topic, , reason]) => `message rejected ${JSON.stringify({ topic, reason })}`).toSorted(byText),
    );
  });

  it("retries a delivery at once if the connection breaks or a proxy responds, and prints nothing", async () => {
    await startBridge();
    controller.override = (_messages, request) =>
      request === 1 ? "disconnect" : request === 2 ? { status: 502 } : undefined;
    await good(0);
    await until(() => controller.acceptedNumbers().length === 1, 5_000);
    expect(controller.requests).toBe(3);
    expect(output).not.toContain("failed");
  });

  it("uses the nodes of a broker that are available", async () => {
    const other = await Aedes.createBroker();
    const sockets = new Set<Socket>();
    const otherServer = createServer((socket) => {
      sockets.add(socket);
      other.handle(socket);
    });
    await new Promise<void>((resolve) => otherServer.listen(0, "127.0.0.1", resolve));
    const listening = () => linesWith(LISTENING).length;
    try {
      const otherUrl = `mqtt://127.0.0.1:${(otherServer.address() as AddressInfo).port}`;
      await startBridge(`mqtt://127.0.0.1:9, ${otherUrl},${brokerUrl}`);
      expect(sockets.size).toBe(1);
      otherServer.close();
      for (const socket of sockets) socket.destroy();
      await until(() => listening() === 2);
      await good(1);
      await until(() => controller.acceptedNumbers().length === 1);
    } finally {
      await new Promise<void>((resolve) => other.close(resolve));
    }
  });
});

describe("the log of rejected messages", () => {
  it("has 20 lines of limited length, and every minute the number of all other messages", () => {
    const lines = vi.spyOn(console, "log").mockImplementation(() => {});
    try {
      const log = createRejectionLog();
      for (let n = 0; n < 23; n++) log.add("t".repeat(1_000), "r".repeat(1_000));
      const line = `message rejected ${JSON.stringify({ topic: "t".repeat(200), reason: "r".repeat(200) })}`;
      expect(lines.mock.calls).toEqual(Array.from({ length: 20 }, () => [line]));
      log.flush();
      expect(lines.mock.calls.slice(20)).toEqual([["3 more messages rejected"]]);
      log.flush();
      log.add("t", "r");
      expect(lines.mock.calls.slice(21)).toEqual([['message rejected {"topic":"t","reason":"r"}']]);
    } finally {
      lines.mockRestore();
    }
  });
});
