import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";

/** Starts a proxy to the service that destroys the first connection with at least `afterBytes` received bytes. */
export async function cuttingProxy(port: number, afterBytes: number, ownPort = 0) {
  let cuts = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = createConnection(port, "127.0.0.1");
    const destroy = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) sockets.add(socket.on("error", destroy).on("close", destroy));
    client.pipe(upstream).pipe(client);
    upstream.on("data", () => {
      if (cuts > 0 || upstream.bytesRead < afterBytes) return;
      cuts++;
      destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(ownPort, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
