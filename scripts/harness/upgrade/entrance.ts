import { existsSync } from "node:fs";
import { join } from "node:path";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { holdSocket, type SocketHolder } from "../socket-holder.ts";
import { WaitingProxy } from "./waiting-proxy.ts";

/** Where the load comes in, whichever version serves it. */
export interface Entrance {
  url: string;
  /** Where both versions listen. */
  port: number;
  /** What both are started with, if the earlier one can be. */
  socket: SocketHolder | undefined;
  close(): void;
}

/** A socket that is held for both versions or, if the earlier one knows nothing of that, a proxy that waits for whoever is there. */
export async function openEntrance(earlier: string): Promise<Entrance> {
  const files = ["src/programs/stack/inherited-socket.ts", "scripts/stack/handed-socket.ts"];
  if (files.some((file) => existsSync(join(earlier, file)))) {
    const socket = await holdSocket();
    return { url: `http://127.0.0.1:${socket.port}`, port: socket.port, socket, close: () => void socket.close() };
  }
  const port = await anyFreePort();
  const proxy = new WaitingProxy(port);
  await proxy.listen();
  return { url: proxy.url, port, socket: undefined, close: () => proxy.close() };
}
