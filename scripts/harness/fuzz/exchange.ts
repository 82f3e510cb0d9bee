import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";

/** One request and its answer, by Node's own client: `fetch` would mend the odd ones before they leave. */

export interface Answer {
  status: number;
  type: string;
  text: string;
  tookMs: number;
}

export interface Sent {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
}

/** workerd reads on for so long when it has answered already; then it ends the connection, and the answer may be lost with it. */
const READ_ON_BYTES = 64 * 1024;

/** Whether it failed because a large body was refused before all of it was sent. */
export const isCutShort = (error: unknown, { body }: Sent): boolean =>
  (body?.byteLength ?? 0) > READ_ON_BYTES &&
  error instanceof Error &&
  "code" in error &&
  (error.code === "ECONNRESET" || error.code === "EPIPE");

/** Fails where there is no answer within the deadline, or the connection breaks. */
export async function exchange(url: string, sent: Sent, deadlineMs: number): Promise<Answer> {
  const { hostname, port, protocol } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const startedMs = performance.now();
  const send = protocol === "https:" ? httpsRequest : httpRequest;
  const request = send({
    hostname,
    port,
    method: sent.method,
    path: sent.target,
    headers: { ...sent.headers, ...(sent.body !== undefined && { "Content-Length": sent.body.byteLength }) },
    // A connection of its own: where a body was refused, the service ends the connection, and another request would fall with it.
    agent: false,
    signal: AbortSignal.timeout(deadlineMs),
  });
  const answer = (status: number, type: string, text: string): void =>
    resolve({ status, type, text, tookMs: performance.now() - startedMs });
  request.on("error", reject);
  request.on("upgrade", (response, socket) => {
    socket.destroy();
    answer(response.statusCode ?? 0, "", "");
  });
  request.on("response", (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("error", reject);
    response.on("end", () =>
      answer(response.statusCode ?? 0, response.headers["content-type"] ?? "", Buffer.concat(chunks).toString()),
    );
  });
  request.end(sent.body);
  return await promise;
}
