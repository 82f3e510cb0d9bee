import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * What stands in front of a service while it is exchanged, as Caddy does with `lb_try_duration`: a request for which there is nobody
 * yet waits and is tried again; one that somebody has taken is theirs, and is not sent twice.
 */
export class WaitingProxy {
  readonly #server = createServer((incoming, outgoing) => void this.#pass(incoming, outgoing));
  readonly #sockets = new Set<Duplex>();
  /** Where the service is, or will be. */
  readonly #port: number;
  #isClosed = false;

  constructor(port: number) {
    this.#port = port;
  }

  async listen(): Promise<void> {
    this.#server.on("upgrade", (incoming, socket, head) => this.#tunnel(incoming, socket, head));
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#isClosed = true;
    this.#server.close();
    this.#server.closeAllConnections();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const socket = await this.#reach();
    if (socket === undefined) return;
    const { method, url: path, headers } = incoming;
    const onward = request({ method, path, headers, createConnection: () => socket });
    onward.on("response", (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    onward.on("error", () => outgoing.headersSent || outgoing.writeHead(502).end());
    incoming.pipe(onward);
  }

  async #tunnel({ method, url, rawHeaders }: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const upstream = await this.#reach();
    if (upstream === undefined) return;
    const lines = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${rawHeaders[i + 1]}`] : []));
    upstream.write(`${method} ${url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
    upstream.write(head);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) this.#sockets.add(socket.on("error", end).on("close", end));
    client.pipe(upstream).pipe(client);
  }

  /** A connection to whoever is there, as soon as somebody is; none when this is over. */
  async #reach(): Promise<Socket | undefined> {
    for (; !this.#isClosed; await sleep(RETRY_MS)) {
      const socket = connect(this.#port, "127.0.0.1");
      const isOpen = await new Promise<boolean>((resolve) => {
        socket.once("connect", () => resolve(true));
        socket.once("error", () => resolve(false));
      });
      if (isOpen && !this.#isClosed) return socket;
      socket.destroy();
    }
    return undefined;
  }
}

const RETRY_MS = 50;
