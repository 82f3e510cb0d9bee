import * as fc from "fast-check";
import { hostileText, oddEncoding } from "./hostile.ts";
import { BOUNDARY, type WireRequest } from "./request.ts";

/** Malformed requests on the level of text. */

/** The largest body that the service accepts. */
const LIMIT_BYTES = 1024 * 1024;

/** Returns what differs in the changed request. */
type Change = (request: WireRequest) => Partial<WireRequest>;

const withHeader =
  (name: string, value: string): Change =>
  ({ headers }) => ({ headers: { ...headers, [name]: value } });

const withBody =
  (body: string | Buffer, type: string): Change =>
  ({ headers }) => ({ headers: { ...headers, "Content-Type": type }, body: Buffer.from(body) });

/** Repeats the first key of an object with another value. */
const withKeyTwice: Change = ({ body = "" }) => {
  const [, key] = /^\{("(?:[^"\\]|\\.)*"):/.exec(body.toString()) ?? [];
  return key === undefined ? {} : { body: Buffer.from(`{${key}:null,${body.toString().slice(1)}`) };
};

const withPathParameter =
  (text: string): Change =>
  ({ path }) => {
    const [first] = Object.keys(path);
    return first === undefined ? {} : { path: { ...path, [first]: text } };
  };

const withQueryValue =
  (text: string): Change =>
  ({ query: [first = "extra=", ...rest] }) => ({
    query: [`${first.split("=")[0]}=${text.replaceAll(/[&#?]/g, "")}`, ...rest],
  });

const TYPES = [
  ...["text/plain", "application/xml", "application/JSON", "application/vnd.api+json", "multipart/form-data", "", "/"],
  ...["application/json; charset=utf-16", "application/json, text/plain", "application/x-www-form-urlencoded"],
  ...[`multipart/form-data; boundary=${BOUNDARY}`, "multipart/form-data; boundary="],
];

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const ACCEPTED_ENCODINGS = ["identity", "gzip", "br", "gzip, zstd;q=0.1, *;q=0"];

export const slightlyOff: fc.Arbitrary<Change> = fc.oneof(
  fc.constantFrom(...TYPES).map((type) => withHeader("Content-Type", type)),
  fc.constant<Change>(({ headers: { "Content-Type": _, ...headers } }) => ({ headers })),
  fc.constantFrom(...METHODS).map((method) => () => ({ method })),
  fc.constant(withKeyTwice),
  oddEncoding.map(withPathParameter),
  oddEncoding.map(withQueryValue),
  fc.constant<Change>(({ query }) => ({ query: [...query, ...query] })),
  fc.constant<Change>(({ query }) => ({ query: [...query, "extra=1", "=", "&", "x"] })),
  fc.constant<Change>(() => ({ body: Buffer.alloc(0) })),
  fc.constant<Change>(({ body }) => ({ body: body?.subarray(0, body.length >> 1) })),
  fc.constantFrom(...ACCEPTED_ENCODINGS).map((value) => withHeader("Accept-Encoding", value)),
  fc.constantFrom("gzip", "deflate", "x").map((value) => withHeader("Content-Encoding", value)),
  fc.constantFrom("text/html", "*/*", "image/png;q=0.1").map((value) => withHeader("Accept", value)),
);

const deep = (depth: number, open: string, close: string): string => open.repeat(depth) + close.repeat(depth);
const filled = (bytes: number): string => `{"a":"${"x".repeat(bytes - 8)}"}`;

const BODIES: (string | Buffer)[] = [
  ...[deep(33, "[", "]"), deep(10_000, "[", "]"), deep(200_000, "[", "]"), "[".repeat(100_000)],
  `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`,
  ...['{"a":1e400}', "NaN", "Infinity", "-", "{", "null", "\u0000", "\ufeff{}", '{"a":"\u0001"}'],
  '{"__proto__":{"roles":["admin"]}}',
  ...["fffe7b00", "22eda08022", "c080"].map((bytes) => Buffer.from(bytes, "hex")),
  ...[LIMIT_BYTES - 1, LIMIT_BYTES, LIMIT_BYTES + 1, 3 * LIMIT_BYTES].map(filled),
  `[${"1,".repeat(300_000)}1]`,
  `[${"{},".repeat(100_000)}{}]`,
  `{${Array.from({ length: 50_000 }, (_, i) => `"k${i}":${i}`).join()}}`,
];

const FORMS = [
  ...["username=a&username=b&password=c", "username[]=a&password[x]=b", "username=%ff&password=%00", "=&=&="],
  `username=${"a".repeat(300_000)}&password=b`,
  "a&".repeat(50_000),
];

const part = (headers: string): string => `--${BOUNDARY}\r\n${headers}\r\n\r\nx\r\n--${BOUNDARY}--\r\n`;
const PARTS = [
  ...["", `--${BOUNDARY}`, `--${BOUNDARY}--`, `--${BOUNDARY}\r\n\r\nx\r\n--${BOUNDARY}--`],
  part('Content-Disposition: form-data; name="username"; filename="a.txt"\r\nContent-Type: image/png'),
  part("Content-Disposition: form-data"),
  part('Content-Disposition: form-data; name="__proto__"'),
];

const HEADERS = [
  ..."X-Request-Id Idempotency-Key Authorization Cookie X-Forwarded-For CF-Connecting-IP Origin".split(" "),
  ..."Accept-Encoding Content-Type Upgrade Sec-WebSocket-Protocol Sec-WebSocket-Version".split(" "),
  ..."Sec-WebSocket-Key X-HTTP-Method-Override Range If-None-Match".split(" "),
];

/** Replaces what Node's client does not send in a header. */
const headerText = hostileText.map((text) => text.replace(/[^\t\u0020-\u007e\u0080-\u00ff]/g, "?").slice(0, 4_000));

export const hostileWire: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...BODIES).map((body) => withBody(body, "application/json")) },
  fc.constantFrom(...FORMS).map((body) => withBody(body, "application/x-www-form-urlencoded")),
  fc.constantFrom(...PARTS).map((body) => withBody(body, `multipart/form-data; boundary=${BOUNDARY}`)),
  fc.tuple(fc.constantFrom(...HEADERS), headerText).map(([name, value]) => withHeader(name, value)),
  fc.constantFrom(1_000, 8_000, 30_000).map((length) => withHeader("X-Long", "x".repeat(length))),
  fc.constantFrom(2_000, 20_000).map((length) => withQueryValue("x".repeat(length))),
  oddEncoding.map(withPathParameter),
  oddEncoding.map(withQueryValue),
);
