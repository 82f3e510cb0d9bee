/**
 * Receives e-mails by POST and writes each one to a file that a mail program can open.
 *
 * Usage: mail-catcher/server.ts <folder> <port>
 * Every program on this machine can reach the port, so the path of a request must be MAIL_TOKEN, from the environment.
 */
import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import * as z from "zod";

const [folder = "", port] = process.argv.slice(2);
const { MAIL_TOKEN = "" } = process.env;
if (MAIL_TOKEN === "") throw new Error("MAIL_TOKEN is missing");

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
const expected = digest(`/${MAIL_TOKEN}`);

/** Older messages are deleted. */
const MAX_MESSAGES = 1_000;
/** A multiple of the longest message that the controller sends. */
const MAX_BODY_BYTES = 64 * 1024;

const line = z.string().regex(/^[^\r\n]*$/);
const Message = z.object({ from: line, to: line, subject: line, text: z.string(), html: z.string() });

createServer(async (request, response) => {
  if (!timingSafeEqual(digest(request.url ?? ""), expected)) return response.writeHead(401).end();
  if (request.method !== "POST") return response.writeHead(405, { Allow: "POST" }).end();
  if (request.headers["content-type"] !== "application/json") return response.writeHead(415).end();
  if (!(Number(request.headers["content-length"]) <= MAX_BODY_BYTES)) return response.writeHead(413).end();
  const message = Message.safeParse(await json(request).catch(() => undefined));
  if (!message.success) return response.writeHead(422).end();
  const now = new Date();
  const name = `${now.toISOString().replaceAll(":", "-")}-${message.data.to.replace(/[^\w.@-]/g, "_")}.eml`;
  writeFileSync(join(folder, name), toEml(message.data, now), { mode: 0o600 });
  // The names begin with the time, so the first ones are the oldest.
  for (const old of readdirSync(folder).toSorted().slice(0, -MAX_MESSAGES)) rmSync(join(folder, old), { force: true });
  return response.writeHead(204).end();
}).listen(Number(port), "127.0.0.1");

function toEml({ from, to, subject, text, html }: z.output<typeof Message>, date: Date): string {
  const boundary = randomUUID();
  const part = (type: string, content: string) => [
    `--${boundary}`,
    `Content-Type: ${type}; charset=utf-8`,
    "Content-Transfer-Encoding: 8bit",
    "",
    content,
    "",
  ];
  return [
    `From: ${from}`,
    `To: ${to}`,
    `Subject: ${subject}`,
    `Date: ${date.toUTCString()}`,
    "MIME-Version: 1.0",
    `Content-Type: multipart/alternative; boundary="${boundary}"`,
    "",
    ...part("text/plain", text),
    ...part("text/html", html),
    `--${boundary}--`,
    "",
  ].join("\r\n");
}
