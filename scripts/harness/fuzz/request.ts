import type { Operation } from "./document.ts";
import { withLiterals } from "./hostile.ts";

/** A request before it is sent: first as values, then as text. Both can be made invalid. */

export interface Values {
  path: Record<string, unknown>;
  query: Record<string, unknown>;
  body?: unknown;
}

/** The exact bytes of a request. */
export interface WireRequest {
  method: string;
  /** The parameters of the path, encoded. */
  path: Record<string, string>;
  /** Encoded pairs. */
  query: string[];
  headers: Record<string, string>;
  body: Buffer | undefined;
}

const text = (value: unknown): string =>
  typeof value === "string" ? value : withLiterals(JSON.stringify(value) ?? "");
const encoded = (value: unknown): string => encodeURIComponent(text(value).toWellFormed());

const pairs = (values: Record<string, unknown>): string[] =>
  Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .flatMap(([name, value]) => [value].flat().map((each) => `${encoded(name)}=${encoded(each)}`));

export function toWire({ method, body, isWebSocket }: Operation, values: Values, type?: string): WireRequest {
  const hasBody = body !== undefined && values.body !== undefined;
  const path = Object.fromEntries(Object.entries(values.path).map(([name, value]) => [name, encoded(value ?? "")]));
  const contentType = hasBody && type !== undefined && { "Content-Type": type };
  const headers = { ...contentType, ...(isWebSocket && HANDSHAKE) };
  return { method, path, query: pairs(values.query), headers, body: hasBody ? bodyOf(type, values.body) : undefined };
}

const HANDSHAKE = {
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
};

export const BOUNDARY = "fuzz-boundary";

function bodyOf(type: string | undefined, value: unknown): Buffer {
  const fields = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (type?.startsWith("application/x-www-form-urlencoded"))
    return Buffer.from(pairs(Object.fromEntries(fields)).join("&"));
  if (type?.startsWith("multipart/form-data")) return Buffer.from(multipart(fields));
  if (type?.startsWith("text/")) return Buffer.from(text(value));
  return Buffer.from(withLiterals(JSON.stringify(value) ?? ""));
}

const multipart = (fields: [string, unknown][]): string =>
  [
    ...fields.map(
      ([name, value]) =>
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name.replace(/[\r\n"]/g, "_")}"\r\n\r\n${text(value)}\r\n`,
    ),
    `--${BOUNDARY}--\r\n`,
  ].join("");

/** Returns path and query as in the request line. */
export function targetOf({ template }: Operation, { path, query }: WireRequest): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => path[name] ?? "");
  // Removes what would end the request line; other invalid characters are sent.
  return `${filled}${query.length === 0 ? "" : `?${query.join("&")}`}`.replace(/[^\u0021-\u00ff]/g, "");
}
