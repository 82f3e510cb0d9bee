/** Hashes and checks passwords for whoever shows PASSWORDS_TOKEN, from the environment, as bearer: passwords-server.ts <port> */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { availableParallelism } from "node:os";
import { json } from "node:stream/consumers";
import * as z from "zod";
import { nativePasswords } from "./native-passwords.ts";

const { PASSWORDS_TOKEN = "" } = process.env;
if (PASSWORDS_TOKEN === "") throw new Error("PASSWORDS_TOKEN is missing");

/** About the work of a second or two. Who comes then is better told to come again. */
const MAX_WAITING = 64 * availableParallelism();
/** The longest password that a login may try, every character escaped, and a hash. */
const MAX_BODY_BYTES = 4_096;
/** Longer than workerd keeps a connection that is not used: it must never find one closed that it has just chosen. */
const KEEP_ALIVE_MS = 60_000;

/** How often a request that waits gets a byte: several times within what the Worker takes for a stopped process. */
const ALIVE_EVERY_MS = 250;

// Not by Web Crypto: its digests would queue behind the passwords.
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
const expected = digest(`Bearer ${PASSWORDS_TOKEN}`);

/** Of which password a hash is wanted or, with a hash, whether it is of that one. */
const Question = z.object({ password: z.string(), hash: z.string().optional() });

async function settle({ password, hash }: z.output<typeof Question>, signal: AbortSignal): Promise<object> {
  return hash === undefined
    ? { hash: await nativePasswords.hash(password, signal) }
    : { matches: await nativePasswords.verify(hash, password, signal) };
}

/** Those that wait for their turn or their hash. */
const waiting = new Set<ServerResponse>();
// Blanks in front of the JSON: as long as they come, this process runs and the answer will.
setInterval(() => {
  for (const response of waiting) response.write(" ");
}, ALIVE_EVERY_MS);

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const end = (status: number): void => void response.writeHead(status).end();
  if (!timingSafeEqual(digest(request.headers.authorization ?? ""), expected)) return end(401);
  if (request.method !== "POST") return end(204);
  if (!(Number(request.headers["content-length"]) <= MAX_BODY_BYTES)) return end(413);
  const question = Question.safeParse(await json(request).catch(() => undefined));
  if (!question.success) return end(422);
  if (waiting.size >= MAX_WAITING) return end(503);

  // The head goes out at once: if it takes long, this process has stopped.
  response.writeHead(200, { "Content-Type": "application/json" }).flushHeaders();
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  waiting.add(response);
  let text = "{}";
  try {
    text = JSON.stringify(await settle(question.data, gone.signal));
  } catch {
    // The hash is malformed. The cause may quote it, so the answer says nothing.
  } finally {
    waiting.delete(response);
    response.end(text);
  }
}

const server = createServer((request, response) => void answer(request, response));
server.keepAliveTimeout = KEEP_ALIVE_MS;
server.listen(Number(process.argv[2]), "127.0.0.1");
