import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { parseJson } from "../../src/http/json.ts";
import { Invalid } from "../../src/lib/errors.ts";
import { Delivery } from "../../src/schemas/telemetry.ts";

const MIB = 1024 * 1024;
/** The controller's responses have it, unlike those of a proxy. */
export const REQUEST_ID = { "X-Request-Id": "r" };

type Message = Delivery["messages"][number];
export type FakeResponse = { status: number; headers?: Record<string, string> };

/** Takes the deliveries of a bridge as the controller does. Tests choose its failures. */
export class FakeController {
  /** The messages that it has accepted, in order. */
  readonly accepted: Message[] = [];
  requests = 0;
  /** Overrides the response to a delivery. */
  override: (messages: Message[], request: number) => FakeResponse | "disconnect" | undefined = () => undefined;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, reply) => {
      const body = await buffer(request);
      if (request.url?.startsWith("/api/v1/token/")) {
        reply.writeHead(200, REQUEST_ID).end(JSON.stringify({ access_token: "token", expires_in: 60 }));
        return;
      }
      const response = respondTo(body);
      const chosen = this.override(response.messages, ++this.requests);
      if (chosen === "disconnect") return void request.socket.destroy();
      const { status, headers } = chosen ?? response;
      if (status === 200) this.accepted.push(...response.messages);
      const results = response.messages.map(({ error }) => (error ? { error } : { accepted: 1, rejected: [] }));
      reply.writeHead(status, headers).end(JSON.stringify({ status: "success", results }));
    });
  }

  static async start(): Promise<FakeController> {
    const controller = new FakeController();
    await new Promise<void>((resolve) => controller.#server.listen(0, "127.0.0.1", resolve));
    return controller;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Returns the values of `n` in the accepted reports, in order. */
  acceptedNumbers(): number[] {
    return this.accepted.flatMap(({ report }) => {
      const n = (report as { payload?: { n?: number } } | undefined)?.payload?.n;
      return n === undefined ? [] : [n];
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Responds like the controller: rejects a body by its size or depth, and fails with 500 if the database cannot store a string. */
function respondTo(body: Buffer): FakeResponse & { messages: Message[] } {
  if (body.length > MIB) return { status: 413, headers: REQUEST_ID, messages: [] };
  try {
    const parsed = Delivery.safeParse(parseJson(new Uint8Array(body).buffer).value);
    if (!parsed.success) return { status: 422, headers: REQUEST_ID, messages: [] };
    const { messages } = parsed.data;
    const isStorable = messages.every(({ report }) => !/\\ud[89a-f]/.test(JSON.stringify(report) ?? ""));
    return { status: isStorable ? 200 : 500, headers: REQUEST_ID, messages };
  } catch (error) {
    if (error instanceof Invalid) return { status: 422, headers: REQUEST_ID, messages: [] };
    throw error;
  }
}
