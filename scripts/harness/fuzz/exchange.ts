import { writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";

/** Sends one request with Node's own client, since `fetch` would correct malformed ones. */

export interface FuzzResponse {
  status: number;
  type: string;
  text: string;
}

export interface FuzzRequest {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
}

/** workerd reads this much of a body after its response, then closes the connection; the response may be lost with it. */
const READ_ON_BYTES = 64 * 1024;

/** Returns whether a request failed because the service rejected its large body before all of it was sent. */
export const isCutShort = ({ code }: NodeJS.ErrnoException, { body }: FuzzRequest): boolean =>
  (code === "ECONNRESET" || code === "EPIPE") && (body?.byteLength ?? 0) > READ_ON_BYTES;

/** Rejects if there is no response before the deadline, or if the connection breaks. */
export async function exchange(url: string, sent: FuzzRequest, deadlineMs: number): Promise<FuzzResponse> {
  const { hostname, port, protocol } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<FuzzResponse>();
  const send = protocol === "https:" ? httpsRequest : httpRequest;
  const request = send({
    hostname,
    port,
    method: sent.method,
    path: sent.target,
    headers: { ...sent.headers, ...(sent.body !== undefined && { "Content-Length": sent.body.byteLength }) },
    // Its own connection: the service closes it after rejecting a body, which would fail another request.
    agent: false,
    signal: AbortSignal.timeout(deadlineMs),
  });
  request.on("error", reject);
  request.on("upgrade", (response, socket) => {
    socket.destroy();
    resolve({ status: response.statusCode ?? 0, type: "", text: "" });
  });
  request.on("response", (response) => {
    const [status, type] = [response.statusCode ?? 0, response.headers["content-type"] ?? ""];
    buffer(response).then((body) => resolve({ status, type, text: body.toString() }), reject);
  });
  request.end(sent.body);
  return await promise;
}

const MAX_INLINE_BYTES = 4_000;

/** Returns a request as a shell command, without the token of an account. */
export function asCurl(url: string, { method, target, headers, body }: FuzzRequest, name: string): string {
  const hasToken = headers.Authorization?.startsWith("Bearer ey");
  const others = Object.entries(headers).filter(([header]) => !(hasToken && header === "Authorization"));
  return [
    "curl -sS -i --path-as-is --globoff --max-time 60",
    `-X ${method}`,
    ...(hasToken ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...others.map(([header, value]) => `-H ${quoted(value === "" ? `${header};` : `${header}: ${value}`)}`),
    ...(body === undefined ? [] : [`--data-binary ${bodyArgument(body, name)}`]),
    quoted(`${url}${target}`),
  ].join(" ");
}

function bodyArgument(body: Buffer, name: string): string {
  const text = body.toString();
  if (/^(?!@)[\n\u0020-\u007e]*$/.test(text) && body.byteLength <= MAX_INLINE_BYTES) return quoted(text);
  const file = join(tmpdir(), `${name}.body`);
  writeFileSync(file, body);
  return quoted(`@${file}`);
}

const quoted = (text: string): string =>
  /[^\u0020-\u007e]/.test(text)
    ? `$'${[...Buffer.from(text, "latin1")].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}'`
    : `'${text.replaceAll("'", "'\\''")}'`;
