import * as fc from "fast-check";
import { hostileText, oddEncoding } from "./hostile.ts";
import { BOUNDARY, type WireRequest } from "./request.ts";

/** Malformed requests on the level of text. */

/** The largest body that the service accepts. */
const LIMIT_BYTES = 1024 * 1024;

type Change = (request: WireRequest) => WireRequest;

const withHeader =
  (name: string, value: string): Change =>
  (request) => ({ ...request, headers: { ...request.headers, [name]: value } });

const withBody =
  (body: string | Buffer, type = "application/json"): Change =>
  (request) => ({ ...request, headers: { ...request.headers, "Content-Type": type }, body: Buffer.from(body) });

/** Repeats the first key of an object with another value. */
const withKeyTwice: Change = (request) => {
  const [, key] = /^\{("(?:[^"\\]|\\.)*"):/.exec(request.body?.toString() ?? "") ?? [];
  if (key === undefined) return request;
  return { ...request, body: Buffer.from(`{${key}:null,${request.body?.toString().slice(1)}`) };
};

const withPathParameter =
  (text: string): Change =>
  (request) => {
    const [first] = Object.keys(request.path);
    return first === undefined ? request : { ...request, path: { ...request.path, [first]: text } };
  };

const withQueryValue =
  (text: string): Change =>
  (request) => {
    const [first = "extra=", ...rest] = request.query;
    return { ...request, query: [`${first.split("=")[0]}=${text.replaceAll(/[&#?]/g, "")}`, ...rest] };
  };

const TYPES = [
  ...["text/plain", "application/xml", "application/JSON", "application/vnd.api+json", "multipart/form-data", "", "/"],
  ...["application/json; charset=utf-16", "application/json, text/plain", "application/x-www-form-urlencoded"],
  ...[`multipart/form-data; boundary=${BOUNDARY}`, "multipart/form-data; boundary="],
];

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

export const slightlyOff: fc.Arbitrary<Change> = fc.oneof(
  fc.constantFrom(...TYPES).map((type) => withHeader("Content-Type", type)),
  fc.constant<Change>((request) => {
    const { "Content-Type": _, ...headers } = request.headers;
    return { ...request, headers };
  }),
  fc.constantFrom(...METHODS).map(
    (method): Change =>
      (request) => ({ ...request, method }),
  ),
  fc.constant(withKeyTwice),
  oddEncoding.map(withPathParameter),
  oddEncoding.map(withQueryValue),
  fc.constant<Change>((request) => ({ ...request, query: [...request.query, ...request.query] })),
  fc.constant<Change>((request) => ({ ...request, query: [...request.query, "extra=1", "=", "&", "x"] })),
  fc.constant<Change>((request) => ({ ...request, body: Buffer.alloc(0) })),
  fc.constant<Change>((request) => ({ ...request, body: request.body?.subarray(0, request.body.length >> 1) })),
  fc
    .constantFrom("identity", "gzip", "br", "gzip, zstd;q=0.1, *;q=0")
    .map((value) => withHeader("Accept-Encoding", value)),
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
  ...[
    [0xff, 0xfe, 0x7b, 0x00],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0xc0, 0x80],
  ].map((bytes) => Buffer.from(bytes)),
  ...[LIMIT_BYTES - 1, LIMIT_BYTES, LIMIT_BYTES + 1, 3 * LIMIT_BYTES].map(filled),
  `[${"1,".repeat(300_000)}1]`,
  `[${"{},".repeat(100_000)}{}]`,
  `{${Array.from({ length: 50_000 }, (_, i) => `"k${i}":${i}`).join()}}`,
];

const FORMS: string[] = [
  "username=a&username=b&password=c",
  "username[]=a&password[x]=b",
  "username=%ff&password=%00",
  "=&=&=",
  `username=${"a".repeat(300_000)}&password=b`,
  "a&".repeat(50_000),
];

const part = (headers: string): string => `--${BOUNDARY}\r\n${headers}\r\n\r\nx\r\n--${BOUNDARY}--\r\n`;
const PARTS: string[] = [
  ...["", `--${BOUNDARY}`, `--${BOUNDARY}--`, `--${BOUNDARY}\r\n\r\nx\r\n--${BOUNDARY}--`],
  part('Content-Disposition: form-data; name="username"; filename="a.txt"\r\nContent-Type: image/png'),
  part("Content-Disposition: form-data"),
  part('Content-Disposition: form-data; name="__proto__"'),
];

const HEADERS = [
  ..."X-Request-Id Idempotency-Key Authorization Cookie X-Forwarded-For CF-Connecting-IP Origin Accept-Encoding".split(
    " ",
  ),
  ..."Content-Type Upgrade Sec-WebSocket-Protocol Sec-WebSocket-Version Sec-WebSocket-Key".split(" "),
  ...["X-HTTP-Method-Override", "Range", "If-None-Match"],
];

/** Replaces what Node's client does not send in a header. */
const headerText = hostileText.map((text) => text.replace(/[^\t\u0020-\u007e\u0080-\u00ff]/g, "?").slice(0, 4_000));

export const hostileWire: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...BODIES).map((body) => withBody(body)) },
  fc.constantFrom(...FORMS).map((body) => withBody(body, "application/x-www-form-urlencoded")),
  fc.constantFrom(...PARTS).map((body) => withBody(body, `multipart/form-data; boundary=${BOUNDARY}`)),
  fc.tuple(fc.constantFrom(...HEADERS), headerText).map(([name, value]) => withHeader(name, value)),
  fc.constantFrom(1_000, 8_000, 30_000).map((length) => withHeader("X-Long", "x".repeat(length))),
  fc.constantFrom(2_000, 20_000).map((length) => withQueryValue("x".repeat(length))),
  oddEncoding.map(withPathParameter),
  oddEncoding.map(withQueryValue),
);
