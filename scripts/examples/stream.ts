/**
 * A small client for job streams that neither loses nor duplicates rows: an example for authors of clients. It is a single file to copy,
 * and needs only Node and `ws`.
 */
import { on } from "node:events";
import { createWriteStream, openSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";

const HELP = `Usage:
  npm run stream -- --agent <ap_id> --from <time> [--to <time> | --follow <duration>] [<options>]
  npm run stream -- --details [<options>]
  npm run stream -- --job <number> [<options>]

Requests the data of an agent, or the details of all agents, and writes the rows as they arrive. With --job, reads an existing job.

Settings:
  SERVICE_URL                   URL of the controller (default: http://127.0.0.1:8787)
  STREAM_USER, STREAM_PASSWORD  E-mail and password, app_name and api_key, or ap_id and password
  LOGIN_TYPE                    Kind of that login: user, third_party_app or agent (default: user)
  TOKEN                         Token to use instead of a login, until it expires

Options:
  --from, --to <time>   RFC 3339 (UTC without an offset), Unix time, or time before now: 90s, 15m, 2h, 7d (default of --to: now)
  --follow <duration>   Continue with live data for this time
  --format <format>     ndjson or csv (default: ndjson)
  --output <file>       Write to a file instead of standard output; --job appends to it, otherwise it is overwritten
  --stay                Continue after the last message of the service, with messages that others post to the job
  --quiet               Show no progress
  -h, --help            Show this help

Exit codes: 0 all rows written, 1 failed, 3 the service had deleted some rows, 130 Ctrl-C. --job continues after the last row written.`;

const options = readOptions();
const { STREAM_USER, STREAM_PASSWORD = "", LOGIN_TYPE = "user", TOKEN = "" } = process.env;
const service = (process.env.SERVICE_URL || "http://127.0.0.1:8787").replace(/\/+$/, "");

function readOptions() {
  const [text, flag] = [{ type: "string" }, { type: "boolean" }] as const;
  const sources = { agent: text, details: flag, job: text, from: text, to: text, follow: text };
  const format = { type: "string", default: "ndjson" } as const;
  const help = { type: "boolean", short: "h" } as const;
  try {
    return parseArgs({ options: { ...sources, format, output: text, stay: flag, quiet: flag, help } }).values;
  } catch (error) {
    print(`${(error as Error).message}. See --help.`);
    process.exit(1);
  }
}

/** An error that a retry cannot fix. */
class FatalError extends Error {}
/** An error response of the service. */
class ErrorResponse extends Error {
  readonly status: number;
  readonly retryAfterS: number;
  constructor(message: string, status: number, retryAfter: string | null | undefined) {
    super(message);
    this.status = status;
    this.retryAfterS = Number(retryAfter) || 0;
  }
}

interface Message {
  seq: number;
  type: string;
  final: boolean;
  data: unknown;
}

const stop = new AbortController();
let token = TOKEN;
/** `seq` is the number of the last message that the output has written. */
const progress = { seq: 0, rows: 0, estimated: 0, missing: 0, skipped: 0, failure: "", startedMs: Date.now() };

async function call(path: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const headers: Record<string, string> = token === "" ? {} : { Authorization: `Bearer ${token}` };
  const timeout = AbortSignal.timeout(10_000);
  const response = await fetch(`${service}/api/v1/${path}`, { signal: timeout, headers, ...init }).catch((error) => {
    throw new Error(`Cannot reach ${service}: ${error.cause?.code ?? error.message}`);
  });
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return body;
  const { detail = response.statusText } = body;
  const message = Array.isArray(detail) ? detail.map(({ loc, msg }) => `${loc.at(-1)}: ${msg}`).join("; ") : detail;
  throw new ErrorResponse(String(message), response.status, response.headers.get("Retry-After"));
}

async function logIn(): Promise<void> {
  if (!STREAM_USER && TOKEN !== "") throw new FatalError("TOKEN is invalid or has expired.");
  if (!STREAM_USER) throw new FatalError("Set STREAM_USER and STREAM_PASSWORD, or TOKEN. See --help.");
  const body = new URLSearchParams({ username: STREAM_USER, password: STREAM_PASSWORD });
  const { access_token } = await call(`token/?login_type=${LOGIN_TYPE}`, { method: "POST", body }).catch((error) => {
    const isRejected = error instanceof ErrorResponse && error.status < 429;
    throw isRejected ? new FatalError(`${STREAM_USER}: ${error.message}.`) : error;
  });
  token = String(access_token);
}

const UNITS_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
function durationMs(text: string): number | undefined {
  const [, number, unit = ""] = /^(\d+)([smhd])$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (UNITS_MS[unit] ?? 0);
}

/** Returns the number and the kind of the job to read. Creates the job unless --job names one. */
async function findJob(): Promise<{ job: string; kind: string }> {
  const { agent, details, job, from, to, follow } = options;
  if ([agent, details, job].filter(Boolean).length !== 1)
    throw new FatalError("Pass one of --agent, --details and --job. See --help.");
  if (job) {
    const known = await findStatus(job);
    if (known === undefined) print("The service has no job with this number yet. Waiting for messages.");
    return { job, kind: String(known?.kind ?? "stream") };
  }
  if (details) {
    const { job_number } = await call("agent_details/request_all_agents_details", { method: "POST" });
    return { job: String(job_number), kind: "agent_details" };
  }
  if (!from || (to && follow)) throw new FatalError("--agent needs --from, and accepts either --to or --follow.");
  const [nowMs, followMs] = [Date.now(), durationMs(follow ?? "0s")];
  if (followMs === undefined) throw new FatalError("--follow must be a duration: 90s, 15m, 2h, 7d.");
  const time = (text: string) => String(nowMs - (durationMs(text) ?? Number.NaN)).replace("NaN", text);
  const query = { agent_id: agent ?? "", start_time: time(from), end_time: to ? time(to) : String(nowMs + followMs) };
  const path = `agent_data/request_agent_data?${new URLSearchParams(query)}`;
  return { job: String((await call(path, { method: "POST" })).job_number), kind: "agent_data" };
}

/** Returns the status of the job, or undefined if it does not exist. */
async function findStatus(job: string): Promise<Record<string, unknown> | undefined> {
  return await call(`jobs/${encodeURIComponent(job)}`).catch((error) => {
    if (error instanceof ErrorResponse && error.status === 404) return undefined;
    throw error;
  });
}

/** Returns whether all messages of the service itself are written. The service does not repeat messages that are acknowledged. */
async function isComplete(job: string): Promise<boolean> {
  const known = options.stay ? undefined : await findStatus(job);
  const isDone = known?.state === "done" || known?.state === "failed";
  return isDone && Number(known?.messages) <= Math.max(progress.seq, Number(known?.acknowledged_up_to));
}

const COLUMNS: Record<string, string[]> = {
  agent_data: ["time", "field", "value"],
  agent_details: ["id", "ap_id", "onboard", "configuration"],
};
function cell(value: unknown): string {
  const text = typeof value === "string" ? value : value == null ? "" : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes rows. Resolves when the output has written them. */
type Write = (rows: unknown[]) => Promise<void>;

async function openOutput(kind: string): Promise<Write> {
  const { format, output: file, job } = options;
  const columns = COLUMNS[kind];
  if (format !== "ndjson" && format !== "csv") throw new FatalError("--format must be ndjson or csv.");
  if (format === "csv" && columns === undefined)
    throw new FatalError("Only the data and details of agents can be written as CSV. Use --format ndjson.");
  const hasHeader = file !== undefined && job !== undefined && !!statSync(file, { throwIfNoEntry: false })?.size;
  const open = (path: string) => createWriteStream(path, { fd: openSync(path, job === undefined ? "w" : "a") });
  const output = file === undefined ? process.stdout : open(file);
  // The callback of each write gets the error too.
  output.on("error", () => {});
  const writeText = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const fail = ({ code, message }: NodeJS.ErrnoException) =>
        reject(new FatalError(code === "EPIPE" ? "The output was closed." : `Cannot write the output: ${message}`));
      output.write(text, (error) => (error ? fail(error) : resolve()));
    });
  if (format === "ndjson" || columns === undefined) {
    return async (rows) => await writeText(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  }
  if (!hasHeader) await writeText(`${columns.join()}\n`);
  return async (rows) => {
    const complete = rows.filter((row) => columns.every((column) => Object.hasOwn(Object(row), column)));
    if (complete.length < rows.length && progress.skipped === 0)
      print("Skipping messages that lack the columns. --format ndjson shows them.");
    progress.skipped += rows.length - complete.length;
    const lines = complete.map((row) => columns.map((column) => cell((row as Record<string, unknown>)[column])).join());
    await writeText(lines.map((line) => `${line}\n`).join(""));
  };
}

/** Writes the rows of a message, and records its number afterwards. */
async function writeMessage({ seq, type, data }: Message, write: Write): Promise<void> {
  if (type === "gap") {
    for (const { from_seq, to_seq } of data as { from_seq: number; to_seq: number }[]) {
      progress.missing += to_seq - from_seq + 1;
      print(`ROWS ARE LOST: the service has deleted messages ${from_seq} to ${to_seq}.`);
    }
  } else if (type === "status" || type === "error") {
    const { rows_estimated, detail } = data as { rows_estimated?: number | null; detail?: string };
    progress.estimated = rows_estimated ?? 0;
    if (type === "error") progress.failure = detail ?? "no reason given";
  } else {
    const rows = [data].flat();
    if (rows.length > 0) await write(rows);
    progress.rows += rows.length;
  }
  progress.seq = seq;
}

const PING_INTERVAL_MS = 30_000;
const SILENCE_TIMEOUT_MS = 60_000;

/** Reads one connection until it ends. Returns the close code and reason, or undefined if the stream is complete. */
async function readConnection(job: string, write: Write): Promise<{ code: number; reason: string } | undefined> {
  const after = progress.seq > 0 ? `?after=${progress.seq}` : "";
  // After the service has closed the socket, it may keep the TCP connection open. Do not wait for that.
  const settings = { headers: { Authorization: `Bearer ${token}` }, handshakeTimeout: 10_000, closeTimeout: 1_000 };
  const url = `${service.replace(/^http/, "ws")}/api/v1/ws/${encodeURIComponent(job)}${after}`;
  const socket = new WebSocket(url, settings);
  let closed = { code: 1006, reason: "" };
  let rejection: ErrorResponse | undefined;
  socket.on("close", (code, reason) => {
    closed = { code, reason: reason.toString() };
  });
  socket.on("unexpected-response", (_request, { statusCode = 0, statusMessage = "", headers }) => {
    rejection = new ErrorResponse(statusMessage, statusCode, headers["retry-after"]);
    socket.terminate();
  });
  socket.on("error", () => {});
  let lastMessageMs = Date.now();
  let isWriting = false;
  const keepAlive = setInterval(() => {
    if (!isWriting && Date.now() - lastMessageMs >= SILENCE_TIMEOUT_MS) socket.terminate();
    else if (socket.readyState === WebSocket.OPEN) socket.send("ping");
  }, PING_INTERVAL_MS);
  try {
    // Backpressure: stops reading from the socket while messages wait for the output.
    const limits = { highWaterMark: 4, lowWaterMark: 2 };
    const messages = on(socket, "message", { close: ["close"], signal: stop.signal, ...limits });
    for await (const [data] of messages) {
      lastMessageMs = Date.now();
      const text = String(data);
      if (text === "pong") continue;
      const message = JSON.parse(text) as Message;
      // The service delivers at least once, so skip duplicates.
      if (message.seq <= progress.seq) continue;
      isWriting = true;
      await writeMessage(message, write);
      [isWriting, lastMessageMs] = [false, Date.now()];
      socket.send(JSON.stringify({ ack: message.seq }));
      if (message.final && !options.stay) return undefined;
      if (message.type === "gap" && (await isComplete(job))) return undefined;
      if (stop.signal.aborted) break;
    }
    return closed;
  } catch (error) {
    throw rejection ?? error;
  } finally {
    clearInterval(keepAlive);
    socket.close(1000);
  }
}

/** Reconnects with back-off until the stream is complete. */
async function follow(job: string, write: Write): Promise<void> {
  for (let attempt = 0; !stop.signal.aborted; attempt++) {
    const before = progress.seq;
    let pauseMs = 0;
    let reason = "";
    try {
      if (token === "") await logIn();
      if (await isComplete(job)) return;
      const closed = await readConnection(job, write);
      if (closed === undefined) return;
      const { code } = closed;
      reason = closed.reason || `code ${code}`;
      if (code === 4401) token = "";
      else if (code === 4403 || code === 4410 || code === 1008 || code === 1009) throw new FatalError(`${reason}.`);
    } catch (error) {
      if (error instanceof FatalError || stop.signal.aborted) throw error;
      reason = String((error as Error).message);
      if (error instanceof ErrorResponse) {
        if (error.status === 401) token = "";
        else if (error.status < 429) throw new FatalError(`${reason}.`);
        pauseMs = error.retryAfterS * 1_000;
      }
    }
    if (progress.seq > before) attempt = 0;
    pauseMs = Math.max(pauseMs, Math.min(30_000, 250 * 2 ** attempt) * (0.5 + Math.random() / 2));
    const seconds = (pauseMs / 1_000).toFixed(1);
    print(`Connection lost (${reason}). Reconnecting in ${seconds} s, after message ${progress.seq}.`);
    await sleep(pauseMs, undefined, { signal: stop.signal }).catch(() => {});
  }
}

/** Prints to standard error, because standard output is for rows. */
function print(text: string): void {
  const clear = process.stderr.isTTY ? "\r\u001b[K" : "";
  process.stderr.write(`${clear}${text}\n`);
}

/** Shows a bar on a terminal that does not also show the rows. Otherwise prints a line every five seconds. */
function showProgress(): NodeJS.Timeout | undefined {
  if (options.quiet) return undefined;
  const hasBar = process.stderr.isTTY && (options.output !== undefined || !process.stdout.isTTY);
  const show = () => {
    const { rows, estimated, startedMs } = progress;
    const perSecond = Math.round((rows * 1_000) / (Date.now() - startedMs));
    const of = estimated > 0 ? ` of about ${Math.max(estimated, rows).toLocaleString("en")}` : "";
    const text = `${rows.toLocaleString("en")}${of} rows, ${perSecond.toLocaleString("en")}/s`;
    const full = estimated > 0 ? Math.min(20, Math.round((20 * rows) / estimated)) : 0;
    if (hasBar) process.stderr.write(`\r[${"#".repeat(full).padEnd(20)}] ${text}\u001b[K`);
    else print(text);
  };
  return setInterval(show, hasBar ? 200 : 5_000);
}

async function main(): Promise<void> {
  if (options.help) return console.log(HELP);
  let interruptedMs = Number.POSITIVE_INFINITY;
  const interrupt = () => {
    // The terminal and npm both send the signal, so the first Ctrl-C arrives twice. A later one exits at once.
    if (Date.now() - interruptedMs > 500) process.exit(130);
    if (!stop.signal.aborted) interruptedMs = Date.now();
    stop.abort();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
  if (token === "") await logIn();
  const { job, kind } = await findJob();
  const write = await openOutput(kind);
  if (!options.quiet) print(`Job ${job}`);
  const progressTimer = showProgress();
  try {
    await follow(job, write);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    clearInterval(progressTimer);
  }
  if (progress.failure !== "") throw new FatalError(`The job failed: ${progress.failure}.`);
  if (progress.missing > 0) process.exitCode = 3;
  if (stop.signal.aborted) process.exitCode = 130;
  const hint = stop.signal.aborted ? ` To continue: npm run stream -- --job ${job}` : "";
  const lost = progress.missing > 0 ? ` ${progress.missing} MESSAGES WITH ROWS ARE LOST.` : "";
  if (!options.quiet || hint || lost) print(`Rows written: ${progress.rows.toLocaleString("en")}.${lost}${hint}`);
}

try {
  await main();
} catch (error) {
  print((error as Error).message);
  process.exitCode = 1;
}
