import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy that injects network faults. */

export const NETWORK_FAULTS = [
  /** Delays every chunk, both ways. */
  "slow",
  /** Resets all connections again and again. */
  "cut",
  /** Drops all data silently. Connections that existed during the fault stay dead afterwards. */
  "half-open",
  /** Changes bytes of responses to ones that neither HTTP nor JSON allows, so that the protocol detects them. */
  "garbled responses",
  /** Changes bytes of requests to arbitrary ones. */
  "garbled requests",
] as const;
export type NetworkFault = (typeof NETWORK_FAULTS)[number];

const DELAY_MS = 150;
const CUT_EVERY_MS = 300;
/** The share of chunks that are garbled. */
const GARBLED_SHARE = 1 / 4;
const CONTROL_BYTE = 0x01;

interface Link {
  client: Socket;
  server: Socket;
  isDead: boolean;
}

export class FaultyProxy {
  readonly #server = createServer();
  readonly #links = new Set<Link>();
  #fault: NetworkFault | undefined;
  #cutting: ReturnType<typeof setInterval> | undefined;

  /** Listens for connections to a URL. Returns the URL of the proxy. */
  async forwardTo(url: string): Promise<string> {
    const { protocol, hostname, port } = new URL(url);
    this.#server.on("connection", (client) => this.#forward(client, connect(Number(port), hostname)));
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `${protocol}//127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  begin(fault: NetworkFault): void {
    this.#fault = fault;
    if (fault === "half-open") for (const link of this.#links) link.isDead = true;
    if (fault === "cut") this.#cutting = setInterval(() => this.#cutAll(), CUT_EVERY_MS);
  }

  end(): void {
    this.#fault = undefined;
    clearInterval(this.#cutting);
  }

  async close(): Promise<void> {
    this.end();
    this.#cutAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #cutAll(): void {
    for (const { client, server } of this.#links) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  #forward(client: Socket, server: Socket): void {
    const link: Link = { client, server, isDead: this.#fault === "half-open" };
    this.#links.add(link);
    for (const socket of [client, server]) socket.setNoDelay(true);
    this.#copy(link, client, server, "garbled requests");
    this.#copy(link, server, client, "garbled responses");
  }

  #copy(link: Link, from: Socket, to: Socket, garbling: NetworkFault): void {
    let last = Promise.resolve();
    /** Keeps the order of delayed work. */
    const later = (work: () => void): void => {
      const arrival = this.#fault === "slow" ? new Promise((resolve) => setTimeout(resolve, DELAY_MS)) : undefined;
      last = last.then(() => arrival).then(work);
    };
    from.on("data", (chunk) => {
      if (link.isDead) return;
      const isGarbled = this.#fault === garbling && Math.random() < GARBLED_SHARE;
      later(() => {
        if (!to.writable) return;
        if (to.write(isGarbled ? garble(chunk, garbling) : chunk)) return;
        from.pause();
        to.once("drain", () => from.resume());
      });
    });
    from.on("error", () => {});
    from.on("close", () => {
      // Neither side of a dead link learns of the other's close, so it ends when both have closed.
      if (link.isDead && !to.destroyed) return;
      later(() => {
        this.#links.delete(link);
        to.destroy();
      });
    });
  }
}

/** Returns a copy of the chunk with one byte changed. */
function garble(chunk: Buffer, garbling: NetworkFault): Buffer {
  const garbled = Buffer.from(chunk);
  const any = Math.floor(Math.random() * 256);
  garbled[Math.floor(Math.random() * garbled.length)] = garbling === "garbled responses" ? CONTROL_BYTE : any;
  return garbled;
}
