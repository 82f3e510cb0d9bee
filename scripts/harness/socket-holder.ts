import { once } from "node:events";
import { Worker } from "node:worker_threads";

/**
 * Holds a listening socket for the product, as systemd does. Node would accept connections on a socket of its own; the thread that opens
 * this one blocks afterwards, so it never accepts any.
 */
const HOLDER = `
  const server = require("node:net").createServer();
  server.listen(0, "127.0.0.1", () => {
    require("node:worker_threads").parentPort.postMessage({ fd: server._handle.fd, port: server.address().port });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;

export interface SocketHolder {
  fd: number;
  port: number;
  close(): Promise<unknown>;
}

export async function holdSocket(): Promise<SocketHolder> {
  const holder = new Worker(HOLDER, { eval: true });
  const [opened] = (await once(holder, "message")) as [{ fd: number; port: number }];
  return { ...opened, close: () => holder.terminate() };
}
