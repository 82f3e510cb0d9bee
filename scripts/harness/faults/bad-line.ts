import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A bad line: passes connections on to another place, and does to what passes what it is told. */

export type Damage =
  /** Every chunk comes late, both ways. */
  | "slow"
  /** Connections are cut off again and again, in the middle of whatever passes. */
  | "cut"
  /** What passes is swallowed, and nobody is told: connections that were there stay dead when the damage is over. */
  | "half-open"
  /** Some of what comes back is garbled, so that a protocol can tell: with bytes that neither HTTP nor JSON allows. */
  | "garbled answers"
  /** Some of what goes there is garbled, with any bytes at all. */
  | "garbled questions";

const DELAY_MS = 150;
const CUT_EVERY_MS = 300;
/** One chunk of so many is garbled. */
const GARBLED_ONE_OF = 4;
const CONTROL_BYTE = 0x01;

interface Line {
  client: Socket;
  server: Socket;
  isDead: boolean;
}

export class BadLine {
  readonly #server: Server;
  readonly #lines = new Set<Line>();
  #target: { host: string; port: number } | undefined;
  #damage: Damage | undefined;
  #cutting: ReturnType<typeof setInterval> | undefined;

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (client) => this.#pass(client));
  }

  static async listen(): Promise<BadLine> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new BadLine(server);
  }

  /** Where it is reached: the address of the target with its own port. */
  urlFor(scheme: string): string {
    return `${scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Where it leads. Until then nobody is let in. */
  leadTo(url: string): void {
    const { hostname, port } = new URL(url);
    this.#target = { host: hostname, port: Number(port) };
  }

  begin(damage: Damage): void {
    this.#damage = damage;
    if (damage === "half-open") for (const line of this.#lines) line.isDead = true;
    if (damage === "cut") this.#cutting = setInterval(() => this.#cutAll(), CUT_EVERY_MS);
  }

  end(): void {
    this.#damage = undefined;
    clearInterval(this.#cutting);
  }

  async close(): Promise<void> {
    this.end();
    this.#cutAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #cutAll(): void {
    for (const { client, server } of this.#lines) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  #pass(client: Socket): void {
    if (this.#target === undefined) return void client.destroy();
    const server = connect(this.#target);
    const line: Line = { client, server, isDead: this.#damage === "half-open" };
    this.#lines.add(line);
    for (const socket of [client, server]) socket.setNoDelay(true);
    this.#carry(line, client, server, "garbled questions");
    this.#carry(line, server, client, "garbled answers");
  }

  #carry(line: Line, from: Socket, to: Socket, garbling: Damage): void {
    let last = Promise.resolve();
    /** In order, however late. */
    const later = (work: () => void): void => {
      const delayMs = this.#damage === "slow" ? DELAY_MS : 0;
      const arrival = delayMs === 0 ? undefined : new Promise((resolve) => setTimeout(resolve, delayMs));
      last = last.then(() => arrival).then(work);
    };
    from.on("data", (chunk) => {
      if (line.isDead) return;
      const isGarbled = this.#damage === garbling && Math.random() < 1 / GARBLED_ONE_OF;
      later(() => {
        if (!to.writable) return;
        // Not faster than it is read at the other end.
        if (to.write(isGarbled ? garble(chunk, garbling) : chunk)) return;
        from.pause();
        to.once("drain", () => from.resume());
      });
    });
    from.on("error", () => {});
    from.on("close", () => {
      if (line.isDead) {
        // The other end is not told, and neither side hears of it: only what is closed on both is done with.
        if (to.destroyed) this.#lines.delete(line);
        return;
      }
      later(() => {
        this.#lines.delete(line);
        to.destroy();
      });
    });
  }
}

/** One byte of the chunk is another one. */
function garble(chunk: Buffer, garbling: Damage): Buffer {
  const garbled = Buffer.from(chunk);
  const any = Math.floor(Math.random() * 256);
  garbled[Math.floor(Math.random() * garbled.length)] = garbling === "garbled answers" ? CONTROL_BYTE : any;
  return garbled;
}
