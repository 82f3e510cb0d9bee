import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectAsync, connect as connectNow, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { canMount, LimitedDisk } from "../../../../scripts/harness/faults/limited-disk.ts";
import { run, until } from "../../../../scripts/harness/product.ts";
import { subscribe } from "../../../../src/programs/bridge/subscriber.ts";
import { Supervisor } from "../../../../src/programs/stack/supervisor.ts";
import { TokenIssuer } from "../../../support/token-issuer.ts";

describe("the broker", () => {
  const supervisor = new Supervisor();
  const folder = mkdtempSync(join(tmpdir(), "broker-failures-"));
  const clients: MqttClient[] = [];
  const children: ChildProcess[] = [];
  let issuer: TokenIssuer;

  beforeAll(async () => {
    issuer = await TokenIssuer.start();
  });

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.endAsync(true)));
    for (const child of children) child.kill("SIGKILL");
    await supervisor.stop();
    issuer.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("says which port is in use, and ends", async () => {
    const { component, tcpPort } = await issuer.broker(join(folder, "port"));
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(tcpPort, "127.0.0.1", resolve));
    const { code, output } = await run(component.command, component.args);
    other.close();
    expect(code).toBe(1);
    expect(output).toBe(`Cannot accept connections: listen EADDRINUSE: address already in use 127.0.0.1:${tcpPort}\n`);
  });

  it("loses no acknowledged message when it is killed", async () => {
    const KILLS = 3;
    const PUBLISHERS = 4;
    const BURST = 100;
    const { component, tcpPort } = await issuer.broker(join(folder, "killed"));
    const url = `mqtt://127.0.0.1:${tcpPort}`;
    const token = await issuer.signForApp("bridge");
    const start = async () => {
      const { command, args, ready } = component;
      const child = spawn(command, args, { stdio: "inherit" });
      children.push(child);
      await until(() => ready([]));
      return child;
    };
    // Acknowledges no message, so that in the end the broker has queued every one.
    const receive = (onMessage: (payload: string) => void, signal = new AbortController().signal) =>
      subscribe({
        url,
        username: "bridge",
        password: token,
        clientId: "queued",
        topics: ["agent/+/data"],
        signal,
        drained: async () => {},
        onMessage: ({ payload }) => void onMessage(payload.toString()),
      });
    const connectPublisher = async (i: number) => {
      const options = { username: `a${i}`, password: await issuer.sign({ sub: `a${i}` }), reconnectPeriod: 0 };
      const publisher = await connectAsync(url, options);
      clients.push(publisher.on("error", () => {}));
      return publisher;
    };
    const acknowledged = new Set<string>();

    for (let kill = 0; kill < KILLS; kill++) {
      const child = await start();
      if (kill === 0) {
        const options = { username: "bridge", password: token, clientId: "queued", clean: false, reconnectPeriod: 0 };
        const subscriber = await connectAsync(url, options);
        await subscriber.subscribeAsync("agent/+/data", { qos: 1 });
        await subscriber.endAsync();
      }
      // The subscriber is connected at every other kill.
      let receiving = Promise.resolve();
      if (kill % 2 === 1) {
        await new Promise<void>((resolve) => {
          receiving = receive(() => resolve()).catch(() => {});
        });
      }
      const publishers = await Promise.all(Array.from({ length: PUBLISHERS }, (_, i) => connectPublisher(i)));
      let count = 0;
      for (const [i, publisher] of publishers.entries()) {
        for (let n = 0; n < BURST; n++) {
          const payload = `${kill}/${i}/${n}`;
          publisher.publish(`agent/a${i}/data`, payload, { qos: 1 }, (error) => {
            if (error) return;
            acknowledged.add(payload);
            // Most of the burst is in flight at this time.
            if (++count === BURST / 4) child.kill("SIGKILL");
          });
        }
      }
      await Promise.all([once(child, "exit"), receiving]);
    }

    await start();
    const stop = new AbortController();
    const received = new Set<string>();
    const receiving = receive((payload) => received.add(payload), stop.signal);
    const missing = () => [...acknowledged].filter((payload) => !received.has(payload));
    await until(() => missing().length === 0, 5_000).catch(() => {});
    expect(missing()).toHaveLength(0);
    stop.abort();
    await receiving;
  });

  it.runIf(canMount())("accepts no connections while its disk is full, and loses no acknowledged message", async () => {
    const disk = new LimitedDisk(join(folder, "small", "broker"));
    const { component, tcpPort } = await issuer.broker(join(folder, "small"));
    const url = `mqtt://127.0.0.1:${tcpPort}`;
    try {
      await supervisor.start(component);
      const session = {
        clientId: "subscriber",
        clean: false,
        username: "bridge",
        password: await issuer.signForApp("bridge"),
      };
      const subscriber = await connectAsync(url, session);
      await subscriber.subscribeAsync("agent/+/data", { qos: 1 });
      await subscriber.endAsync();

      const publisher = connectNow(url, {
        username: "a",
        password: await issuer.sign({ sub: "a" }),
        reconnectPeriod: 50,
      });
      clients.push(publisher);
      publisher.on("error", () => {});
      await new Promise((resolve) => publisher.once("connect", resolve));
      disk.fill();
      let acknowledged = 0;
      const messages = Array.from({ length: 50 }, (_, n) => `${n} ${"x".repeat(1_000)}`);
      const publishing = messages.map(async (message) => {
        await publisher.publishAsync("agent/a/data", message, { qos: 1 });
        acknowledged++;
      });
      await new Promise<void>((resolve) => publisher.once("close", () => resolve()));
      await until(async () => !(await component.ready([])));
      // A few messages fit into the remaining space.
      expect(acknowledged).toBeLessThan(messages.length);
      disk.free();
      await Promise.all(publishing);

      process.kill(supervisor.pids.broker ?? 0, "SIGKILL");
      const received = new Set<string>();
      const again = connectNow(url, { ...session, reconnectPeriod: 50 });
      clients.push(again);
      again.on("error", () => {});
      again.on("message", (_topic, payload) => received.add(payload.toString()));
      await until(() => received.size === messages.length);
    } finally {
      disk.unmount();
    }
  });
});
