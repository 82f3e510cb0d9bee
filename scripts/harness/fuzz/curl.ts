import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sent } from "./exchange.ts";

/** A request as a command for a shell. Whose token it bears is told beside it; the token itself is nobody's business. */

const MAX_INLINE_BYTES = 4_000;

export function asCurl(url: string, { method, target, headers, body }: Sent, name: string): string {
  const bears = headers.Authorization?.startsWith("Bearer ey");
  const others = Object.entries(headers).filter(([header]) => !(bears && header === "Authorization"));
  return [
    "curl -sS -i --path-as-is --globoff --max-time 60",
    `-X ${method}`,
    ...(bears ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...others.map(([header, value]) => `-H ${quoted(value === "" ? `${header};` : `${header}: ${value}`)}`),
    ...(body === undefined ? [] : [`--data-binary ${bodyArgument(body, name)}`]),
    quoted(`${url}${target}`),
  ].join(" ");
}

function bodyArgument(body: Buffer, name: string): string {
  const text = body.toString();
  const isPlain = /^[\n\u0020-\u007e]*$/.test(text) && !text.startsWith("@") && body.byteLength <= MAX_INLINE_BYTES;
  if (isPlain) return quoted(text);
  const file = join(tmpdir(), `${name}.body`);
  writeFileSync(file, body);
  return quoted(`@${file}`);
}

const quoted = (text: string): string =>
  /[^\u0020-\u007e]/.test(text)
    ? `$'${[...Buffer.from(text, "latin1")].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}'`
    : `'${text.replaceAll("'", "'\\''")}'`;
