import { existsSync, mkdirSync } from "node:fs";
import { connect } from "node:net";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import type { Component } from "../../../src/programs/stack/supervisor.ts";

const SERVER = "/usr/bin/redis-server";

/** Whether Debian's package redis-server is installed. Tests that need it are skipped otherwise. */
export const hasRedis = existsSync(SERVER);

/** Returns a Redis server to start, with the durability that docs/brokers.md asks for. */
export async function redisComponent(folder: string): Promise<{ component: Component; url: string }> {
  const port = await anyFreePort();
  mkdirSync(folder, { recursive: true });
  const options = { port, bind: "127.0.0.1", dir: folder, appendonly: "yes", save: "", daemonize: "no" };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const component = {
    name: "redis",
    command: SERVER,
    args: [...args, "--loglevel", "warning"],
    ready: () => responds(port),
    // It warns of the machine's settings at every start.
    display: () => undefined,
  };
  return { component, url: `redis://127.0.0.1:${port}` };
}

const responds = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
    socket.once("data", (bytes) => {
      socket.destroy();
      resolve(bytes.toString().startsWith("+PONG"));
    });
    socket.once("error", () => resolve(false));
  });
