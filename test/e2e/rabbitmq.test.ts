import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectAsync, connect as connectNow, type IClientOptions, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasRabbitmq, type RabbitmqNode, rabbitmqCluster } from "../../scripts/harness/brokers/rabbitmq-server.ts";
import { until } from "../../scripts/harness/product.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { startLoad } from "../support/cluster/broker-load.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

const PASSWORD = `${SECRET_MARK} password`;

/** Two nodes of Debian's RabbitMQ, with the configuration of the docs. The product authorizes their clients. */
describe.skipIf(!hasRabbitmq)(
  "RabbitMQ (of Debian's package rabbitmq-server) with the configuration of the docs",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "rabbitmq-"));
    const supervisor = new Supervisor();
    const clients: MqttClient[] = [];
    let product: Awaited<ReturnType<typeof sharedProduct>>;
    let service: ServiceClient;
    let admin: string;
    let nodes: RabbitmqNode[];

    beforeAll(async () => {
      product = await sharedProduct();
      service = new ServiceClient(product.url);
      admin = await service.tokenOf(ADMIN);
      const cluster = await rabbitmqCluster(folder, product.url, 2);
      ({ nodes } = cluster);
      await supervisor.start(cluster.nameServer);
      for (const { component } of nodes) await supervisor.start(component);
    });

    afterAll(async () => {
      await Promise.all(clients.map((client) => client.endAsync(true)));
      await supervisor.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const created = (path: string, body: object): Promise<unknown> => service.post(path, admin, body);
    /** Creates an agent. */
    const newAgent = async (suffix = "") => {
      const username = `rabbit:${randomUUID()}${suffix}`;
      await created("/api/v1/agents/", { ap_id: username, password: PASSWORD, configuration: {} });
      const password = await service.tokenOf({ username, password: PASSWORD }, "agent");
      return { username, password, clientId: `agent/${username}` };
    };
    /** Creates an app that may use all topics. */
    const newService = async () => {
      const username = `bridge-${randomUUID()}`;
      await created("/api/v1/third_party_apps/", {
        app_name: username,
        api_key: PASSWORD,
        permissions: { broker: true },
      });
      const password = await service.tokenOf({ username, password: PASSWORD }, "third_party_app");
      return { username, password, clientId: username };
    };
    const urlOf = (node: number): string => nodes[node]?.mqttUrl ?? "";
    const connect = async (url: string, options: IClientOptions): Promise<MqttClient> => {
      const client = await connectAsync(url, { reconnectPeriod: 0, ...options });
      clients.push(client.on("error", () => {}));
      return client;
    };
    const closed = (client: MqttClient) => new Promise((resolve) => client.once("close", () => resolve("closed")));

    it("rejects clients without a valid token, and agents with another client id", async () => {
      const [agent, other] = [await newAgent(), await newAgent()];
      for (const options of [
        { ...agent, password: "no token" },
        { ...agent, password: other.password },
        { ...agent, clientId: other.clientId },
        { ...agent, clientId: "" },
        { username: "guest", password: "guest", clientId: "guest" },
      ])
        await expect(connect(urlOf(0), options)).rejects.toThrow(/Bad username or password|Not authorized/);
      await expect(connect(urlOf(0), {})).rejects.toThrow(/Bad username or password/);
    });

    it("rejects agents with a dot in their name instead of losing their messages, and the log of the service says why", async () => {
      const agent = await newAgent(".dotted");
      await expect(connect(urlOf(0), agent)).rejects.toThrow(/Bad username or password/);
      const reason = "RabbitMQ would not deliver the messages of an agent with a dot in its name";
      await until(() => product.output().includes(`"client":"agent:${agent.username}","reason":"${reason}`));
    });

    it("forwards what agents publish to their own topics, from one node to the other, in order", async () => {
      const [agent, bridge] = [await newAgent(), await newService()];
      const subscriber = await connect(urlOf(1), { ...bridge, clean: false });
      const received: string[] = [];
      subscriber.on("message", (topic, payload) => received.push(`${topic} ${payload}`));
      await subscriber.subscribeAsync(["agent/+/data", "agent/+/result"], { qos: 1 });
      const publisher = await connect(nodes[0]?.wsUrl ?? "", agent);
      const sent = Array.from({ length: 200 }, (_, n) => `agent/${agent.username}/data ${n}`);
      await Promise.all(
        sent.map((_, n) => publisher.publishAsync(`agent/${agent.username}/data`, String(n), { qos: 1 })),
      );
      await until(() => received.length >= sent.length);
      expect(received).toEqual(sent);
    });

    it("closes the connection of an agent that uses other topics", async () => {
      const [agent, other] = [await newAgent(), await newAgent()];
      for (const topic of [`agent/${other.username}/data`, `agent/${agent.username}/command`, "emulator_spinup"]) {
        const client = await connect(urlOf(0), agent);
        const end = closed(client);
        client.publish(topic, "x", { qos: 1 });
        expect(await end, topic).toBe("closed");
      }
      for (const filter of ["#", "agent/+/command", `agent/${other.username}/command`]) {
        const client = await connect(urlOf(0), agent);
        const end = closed(client);
        client.subscribe(filter, { qos: 1 });
        expect(await end, filter).toBe("closed");
      }
    });

    it("keeps the newest hundred commands for an agent that is disconnected from either node", async () => {
      const [agent, bridge] = [await newAgent(), await newService()];
      const session = { ...agent, clean: false, reconnectPeriod: 0 };
      const first = await connect(urlOf(0), session);
      await first.subscribeAsync(`agent/${agent.username}/command`, { qos: 1 });
      await first.endAsync();
      const publisher = await connect(urlOf(1), bridge);
      for (let n = 1; n <= 150; n++)
        await publisher.publishAsync(`agent/${agent.username}/command`, String(n), { qos: 1 });
      const received: string[] = [];
      const second = connectNow(urlOf(1), session);
      clients.push(second.on("error", () => {}));
      second.on("message", (_topic, payload) => received.push(payload.toString()));
      await until(() => received.includes("150"));
      expect(received).toEqual(Array.from({ length: 100 }, (_, i) => String(51 + i)));
    });

    it("loses no acknowledged message when a node is killed under load", async () => {
      const agents = await Promise.all(Array.from({ length: 4 }, () => newAgent()));
      const load = await startLoad(`${urlOf(0)},${urlOf(1)}`, agents, await newService());
      const more = async (count: number) => {
        const before = load.acknowledged.size;
        await until(() => load.acknowledged.size >= before + count, 60_000);
      };
      await more(500);
      nodes[1]?.kill();
      // Two nodes have a majority only together: until the node is back, nothing is acknowledged.
      await more(500);
      await load.stopAgents();
      await until(() => load.missing().length === 0).catch(() => {});
      await load.stop();
      expect(load.missing()).toEqual([]);
    });
  },
);
