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

export function toWire({ method, isWebSocket }: Operation, values: Values, type?: string): WireRequest {
  const path = Object.fromEntries(Object.entries(values.path).map(([name, value]) => [name, encoded(value ?? "")]));
  const request = { method, path, query: pairs(values.query), headers: isWebSocket ? HANDSHAKE : {}, body: undefined };
  if (type === undefined || values.body === undefined) return request;
  const contentType = type.startsWith("multipart/") ? `${type}; boundary=${BOUNDARY}` : type;
  const headers = { "Content-Type": contentType, ...request.headers };
  return { ...request, headers, body: Buffer.from(bodyOf(type, values.body)) };
}

const HANDSHAKE = {
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
};

export const BOUNDARY = "fuzz-boundary";

function bodyOf(type: string, value: unknown): string {
  const fields = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (type === "application/x-www-form-urlencoded") return pairs(Object.fromEntries(fields)).join("&");
  if (type.startsWith("text/")) return text(value);
  if (type !== "multipart/form-data") return withLiterals(JSON.stringify(value) ?? "");
  const parts = fields.map(([name, field]) => {
    const disposition = `Content-Disposition: form-data; name="${name.replace(/[\r\n"]/g, "_")}"`;
    return `--${BOUNDARY}\r\n${disposition}\r\n\r\n${text(field)}\r\n`;
  });
  return `${parts.join("")}--${BOUNDARY}--\r\n`;
}

/** Returns path and query as in the request line. */
export function targetOf({ template }: Operation, path: Record<string, string>, query: string[]): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => path[name] ?? "");
  // Removes what would end the request line; other invalid characters are sent.
  return `${filled}${query.length === 0 ? "" : `?${query.join("&")}`}`.replace(/[^\u0021-\u00ff]/g, "");
}
