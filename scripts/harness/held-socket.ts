import { Worker } from "node:worker_threads";

/**
 * Holds a listening socket for whoever is started with it, as systemd does. Node would accept what comes on a socket of its own; the
 * thread that opens this one never does, since it waits from then on.
 */
const HOLDER = `
  const server = require("node:net").createServer();
  server.listen(0, "127.0.0.1", () => {
    require("node:worker_threads").parentPort.postMessage({ fd: server._handle.fd, port: server.address().port });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;

export interface HeldSocket {
  fd: number;
  port: number;
  close(): Promise<unknown>;
}

export async function holdSocket(): Promise<HeldSocket> {
  const holder = new Worker(HOLDER, { eval: true });
  const opened = await new Promise<{ fd: number; port: number }>((resolve, reject) => {
    holder.once("message", resolve);
    holder.once("error", reject);
  });
  return { ...opened, close: () => holder.terminate() };
}
