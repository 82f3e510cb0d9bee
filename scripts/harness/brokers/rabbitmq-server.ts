import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { randomSecret } from "../../../src/auth/secrets.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import type { Component } from "../../../src/programs/stack/supervisor.ts";

/** A cluster of Debian's RabbitMQ on this machine, with the configuration in docs/self-hosting/rabbitmq. */

const SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const EPMD = "/usr/bin/epmd";
const DOCS = join(ROOT, "docs/self-hosting/rabbitmq");

/** Whether Debian's package rabbitmq-server is installed. Tests that need it are skipped otherwise. */
export const hasRabbitmq = existsSync(SERVER) && existsSync(EPMD);

export interface RabbitmqCluster {
  /** To start one after the other: Erlang's name server, then the nodes. */
  nameServer: Component;
  nodes: RabbitmqNode[];
}

export interface RabbitmqNode {
  component: Component;
  mqttUrl: string;
  wsUrl: string;
  kill(): void;
}

/** @param serviceUrl the controller that authorizes the clients */
export async function rabbitmqCluster(folder: string, serviceUrl: string, count: number): Promise<RabbitmqCluster> {
  const epmdPort = await anyFreePort();
  mkdirSync(folder, { recursive: true });
  const cookie = join(folder, ".erlang.cookie");
  writeFileSync(cookie, randomSecret());
  chmodSync(cookie, 0o400);
  const erlang = { HOME: folder, ERL_EPMD_PORT: String(epmdPort), ERL_EPMD_ADDRESS: "127.0.0.1" };
  // Unique on this machine.
  const names = Array.from({ length: count }, (_, i) => `r${epmdPort}n${i + 1}@localhost`);
  const nodes: RabbitmqNode[] = [];
  for (const name of names) nodes.push(await createNode(join(folder, name), name, names[0] ?? "", serviceUrl, erlang));
  const args = ["-port", String(epmdPort), "-address", "127.0.0.1"];
  return { nameServer: { name: "epmd", command: EPMD, args, ready: () => accepts(epmdPort) }, nodes };
}

async function createNode(
  folder: string,
  name: string,
  first: string,
  serviceUrl: string,
  erlang: Record<string, string>,
): Promise<RabbitmqNode> {
  const [mqttPort, wsPort, distPort] = await Promise.all([anyFreePort(), anyFreePort(), anyFreePort()]);
  mkdirSync(folder, { recursive: true });
  const path = (file: string) => join(folder, file);
  for (const file of ["advanced.config", "enabled_plugins", "definitions.json"])
    copyFileSync(join(DOCS, file), path(file));
  const documented = readFileSync(join(DOCS, "rabbitmq.conf"), "utf8")
    .replaceAll("http://controller.example.com:8787", serviceUrl)
    .replace("mqtt.listeners.tcp.default = 1883", `mqtt.listeners.tcp.default = 127.0.0.1:${mqttPort}`)
    .replace("web_mqtt.tcp.port = 15675", `web_mqtt.tcp.port = ${wsPort}\nweb_mqtt.tcp.ip = 127.0.0.1`)
    .replace("/etc/rabbitmq/definitions.json", path("definitions.json"))
    .replaceAll(/^#(cluster_formation)/gm, name === first ? "#$1" : "$1")
    .replace("rabbit@first", first);
  writeFileSync(
    path("rabbitmq.conf"),
    `${documented}\nlog.console = true\nlog.console.level = error\nlog.file = false\n`,
  );
  const pidFile = path("pid");
  return {
    component: {
      name,
      command: SERVER,
      args: [],
      env: {
        ...erlang,
        RABBITMQ_NODENAME: name,
        RABBITMQ_DIST_PORT: String(distPort),
        RABBITMQ_MNESIA_BASE: path("mnesia"),
        RABBITMQ_LOG_BASE: path("log"),
        RABBITMQ_CONFIG_FILE: path("rabbitmq.conf"),
        RABBITMQ_ADVANCED_CONFIG_FILE: path("advanced.config"),
        RABBITMQ_ENABLED_PLUGINS_FILE: path("enabled_plugins"),
        RABBITMQ_PID_FILE: pidFile,
        RABBITMQ_CONF_ENV_FILE: "/dev/null",
        // One thread per node, which does not spin: several nodes share this machine.
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
          "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none",
      },
      ready: () => accepts(mqttPort),
      display: () => undefined,
      graceMs: 100,
    },
    mqttUrl: `mqtt://127.0.0.1:${mqttPort}`,
    wsUrl: `ws://127.0.0.1:${wsPort}/ws`,
    // The supervisor knows the shell around it.
    kill: () => process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL"),
  };
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
