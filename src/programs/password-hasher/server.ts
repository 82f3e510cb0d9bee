/**
 * Hashes and verifies passwords for the Worker, on all cores.
 *
 * Usage: password-hasher/server.ts <port>
 * Every program on this machine can reach the port, so a request needs PASSWORDS_TOKEN, from the environment, as its bearer token.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { availableParallelism } from "node:os";
import { json } from "node:stream/consumers";
import * as z from "zod";
import { nativePasswords } from "./native-passwords.ts";

const { PASSWORDS_TOKEN = "" } = process.env;
if (PASSWORDS_TOKEN === "") throw new Error("PASSWORDS_TOKEN is missing");

/** One to two seconds of work. Beyond this, a 503 and a retry are better than a long wait. */
const MAX_WAITING = 64 * availableParallelism();
/** The longest password that a login may send, with every character escaped, and a hash. */
const MAX_BODY_BYTES = 4_096;
/** Longer than workerd keeps an idle connection, so that workerd never chooses one that this process is closing. */
const KEEP_ALIVE_MS = 60_000;
/** A waiting request gets a byte this often. If several do not arrive, the Worker assumes that the process has stopped. */
const HEARTBEAT_MS = 250;

// Web Crypto would run its digests in the thread pool, behind the passwords.
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
const expected = digest(`Bearer ${PASSWORDS_TOKEN}`);

/** Without a hash: hash the password. With a hash: verify the password. */
const HashRequest = z.object({ password: z.string(), hash: z.string().optional() });

async function hashOrVerify({ password, hash }: z.output<typeof HashRequest>, signal: AbortSignal): Promise<object> {
  return hash === undefined
    ? { hash: await nativePasswords.hash(password, signal) }
    : { matches: await nativePasswords.verify(hash, password, signal) };
}

/** Responses whose password waits for a thread or is being hashed. */
const waiting = new Set<ServerResponse>();
// JSON may begin with spaces. They show the Worker that this process still runs.
setInterval(() => {
  for (const response of waiting) response.write(" ");
}, HEARTBEAT_MS);

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const end = (status: number): void => void response.writeHead(status).end();
  if (!timingSafeEqual(digest(request.headers.authorization ?? ""), expected)) return end(401);
  if (request.method !== "POST") return end(204);
  if (!(Number(request.headers["content-length"]) <= MAX_BODY_BYTES)) return end(413);
  const parsed = HashRequest.safeParse(await json(request).catch(() => undefined));
  if (!parsed.success) return end(422);
  if (waiting.size >= MAX_WAITING) return end(503);

  // Send the head at once: a Worker that does not get it in time assumes that this process has stopped.
  response.writeHead(200, { "Content-Type": "application/json" }).flushHeaders();
  const disconnected = new AbortController();
  response.once("close", () => disconnected.abort());
  waiting.add(response);
  let text = "{}";
  try {
    text = JSON.stringify(await hashOrVerify(parsed.data, disconnected.signal));
  } catch {
    // The hash is malformed. The error may quote it, so the response does not repeat the error.
  } finally {
    waiting.delete(response);
    response.end(text);
  }
}

const server = createServer((request, response) => void respond(request, response));
server.keepAliveTimeout = KEEP_ALIVE_MS;
server.listen(Number(process.argv[2]), "127.0.0.1");
