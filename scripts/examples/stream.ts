/**
 * A small client of job streams that neither loses nor duplicates rows: a starting point for authors of clients. It is one file that needs
 * only Node and `ws`, so that you can copy it.
 */
import { on } from "node:events";
import { createWriteStream, openSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";

const HELP = `npm run stream -- --agent <ap_id> --from <time> [--to <time> | --follow <duration>]
npm run stream -- --details
npm run stream -- --job <number>

Requests an agent's data, or the details of all agents, and writes the rows as they arrive; or resumes a job.

  --from, --to <time>  RFC 3339 (without an offset: UTC), epoch milliseconds, or an age: 90s, 15m, 2h, 7d (--to: now)
  --follow <duration>  Continue with live data for this long
  --format <format>    ndjson or csv (default: ndjson)
  --output <file>      Write to a file; replaces it, or appends to it with --job (default: standard output)
  --stay               Continue after the last message of the service, with messages that others post to the job
  --quiet              Print no progress

  SERVICE_URL                  URL of the service (default: http://127.0.0.1:8787)
  STREAM_USER, STREAM_PASSWORD e-mail and password, app_name and api_key, or ap_id and password
  LOGIN_TYPE                   user, third_party_app or agent (default: user)
  TOKEN                        a token instead of a login, until it expires

Exit status: 0 if everything was written, 1 on failure, 3 if the service had dropped messages, 130 after Ctrl-C. The service does not
send written rows again: --job continues after them.`;

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

/** An error that a retry does not fix. */
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
/** The progress. `seq` is the last message that was written to the output. */
const progress = { seq: 0, rows: 0, estimated: 0, missing: 0, skipped: 0, failure: "", startedMs: Date.now() };

async function call(path: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const headers: Record<string, string> = token === "" ? {} : { Authorization: `Bearer ${token}` };
  const timeout = AbortSignal.timeout(10_000);
  const response = await fetch(`${service}/api/v1/${path}`, { signal: timeout, headers, ...init }).catch((error) => {
    throw new Error(`${service} cannot be reached: ${error.cause?.code ?? error.message}`);
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
    throw error instanceof ErrorResponse && error.status < 429
      ? new FatalError(`${STREAM_USER}: ${error.message}.`)
      : error;
  });
  token = String(access_token);
}

const UNITS_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
function durationMs(text: string): number | undefined {
  const [, number, unit = ""] = /^(\d+)([smhd])$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (UNITS_MS[unit] ?? 0);
}

/** Requests the data, or looks up the given job. Returns the number and the kind of the job. */
async function findJob(): Promise<{ job: string; kind: string }> {
  const { agent, details, job, from, to, follow } = options;
  if ([agent, details, job].filter(Boolean).length !== 1)
    throw new FatalError("Use exactly one of --agent, --details and --job. See --help.");
  if (job) {
    const status = await readJob(job);
    if (status === undefined) print("The job does not exist yet. Waiting for messages.");
    return { job, kind: String(status?.kind ?? "stream") };
  }
  if (details) {
    const { job_number } = await call("agent_details/request_all_agents_details", { method: "POST" });
    return { job: String(job_number), kind: "agent_details" };
  }
  if (!from || (to && follow)) throw new FatalError("--agent needs --from, and takes either --to or --follow.");
  const [nowMs, followMs] = [Date.now(), durationMs(follow ?? "0s")];
  if (followMs === undefined) throw new FatalError("--follow must be a duration, such as 90s, 15m, 2h or 7d.");
  const time = (text: string) => String(nowMs - (durationMs(text) ?? Number.NaN)).replace("NaN", text);
  const query = { agent_id: agent ?? "", start_time: time(from), end_time: to ? time(to) : String(nowMs + followMs) };
  const path = `agent_data/request_agent_data?${new URLSearchParams(query)}`;
  return { job: String((await call(path, { method: "POST" })).job_number), kind: "agent_data" };
}

/** Returns the status of the job, or undefined if there is no such job. */
async function readJob(job: string): Promise<Record<string, unknown> | undefined> {
  return await call(`jobs/${encodeURIComponent(job)}`).catch((error) => {
    if (error instanceof ErrorResponse && error.status === 404) return undefined;
    throw error;
  });
}

/** Returns whether everything that the service produces for the job is written. It does not send an acknowledged last message again. */
async function isComplete(job: string): Promise<boolean> {
  const status = options.stay ? undefined : await readJob(job);
  const hasEnded = status?.state === "done" || status?.state === "failed";
  return hasEnded && Number(status?.messages) <= Math.max(progress.seq, Number(status?.acknowledged_up_to));
}

const COLUMNS: Record<string, string[]> = {
  agent_data: ["time", "field", "value"],
  agent_details: ["id", "ap_id", "onboard", "configuration"],
};
function cell(value: unknown): string {
  const text = typeof value === "string" ? value : value == null ? "" : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes rows. Resolves when the output has accepted them. */
type Write = (rows: unknown[]) => Promise<void>;

async function openOutput(kind: string): Promise<Write> {
  const { format, output: file, job } = options;
  const columns = COLUMNS[kind];
  if (format !== "ndjson" && format !== "csv") throw new FatalError("--format must be ndjson or csv.");
  if (format === "csv" && columns === undefined)
    throw new FatalError("CSV works for agent data and agent details only.");
  const hasHeader =
    file !== undefined && job !== undefined && (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
  const open = (path: string) => createWriteStream(path, { fd: openSync(path, job === undefined ? "w" : "a") });
  const output = file === undefined ? process.stdout : open(file);
  // The callback of each write reports the error too.
  output.on("error", () => {});
  const put = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const fail = ({ code, message }: NodeJS.ErrnoException) =>
        reject(
          new FatalError(
            code === "EPIPE" ? "The reader of the output has exited." : `Writing the output failed: ${message}`,
          ),
        );
      output.write(text, (error) => (error ? fail(error) : resolve()));
    });
  if (format === "ndjson" || columns === undefined) {
    return async (rows) => await put(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  }
  if (!hasHeader) await put(`${columns.join()}\n`);
  return async (rows) => {
    const matching = rows.filter((row) => columns.every((column) => Object.hasOwn(Object(row), column)));
    if (matching.length < rows.length && progress.skipped === 0)
      print("Some posted items do not have the columns of the CSV. Use --format ndjson to see them.");
    progress.skipped += rows.length - matching.length;
    const lines = matching.map((row) => columns.map((column) => cell((row as Record<string, unknown>)[column])).join());
    await put(lines.map((line) => `${line}\n`).join(""));
  };
}

async function handle({ seq, type, data }: Message, write: Write): Promise<void> {
  if (type === "gap") {
    for (const { from_seq, to_seq } of data as { from_seq: number; to_seq: number }[]) {
      progress.missing += to_seq - from_seq + 1;
      print(`ROWS ARE MISSING: the service has dropped messages ${from_seq} to ${to_seq}.`);
    }
  } else if (type === "status" || type === "error") {
    const { rows_estimated, detail } = data as { rows_estimated?: number | null; detail?: string };
    progress.estimated = rows_estimated ?? 0;
    if (type === "error") progress.failure = detail ?? "The job has failed";
  } else {
    const rows = [data].flat();
    if (rows.length > 0) await write(rows);
    progress.rows += rows.length;
  }
  progress.seq = seq;
}

const PING_EVERY_MS = 30_000;
const SILENT_MS = 60_000;

/** Reads one connection to its end. Returns the close code, or undefined if the stream is complete. */
async function listen(job: string, write: Write): Promise<{ code: number; reason: string } | undefined> {
  const after = progress.seq > 0 ? `?after=${progress.seq}` : "";
  // After a close, the service may keep its side of the connection open for a while without sending anything.
  const settings = { headers: { Authorization: `Bearer ${token}` }, handshakeTimeout: 10_000, closeTimeout: 1_000 };
  const socket = new WebSocket(
    `${service.replace(/^http/, "ws")}/api/v1/ws/${encodeURIComponent(job)}${after}`,
    settings,
  );
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
  let heardMs = Date.now();
  let isWriting = false;
  const keepAlive = setInterval(() => {
    if (!isWriting && Date.now() - heardMs >= SILENT_MS) socket.terminate();
    else if (socket.readyState === WebSocket.OPEN) socket.send("ping");
  }, PING_EVERY_MS);
  try {
    // Pauses the socket while messages wait for the output.
    const messages = on(socket, "message", {
      close: ["close"],
      signal: stop.signal,
      highWaterMark: 4,
      lowWaterMark: 2,
    });
    for await (const [data] of messages) {
      heardMs = Date.now();
      const text = String(data);
      if (text === "pong") continue;
      const message = JSON.parse(text) as Message;
      // Delivery is at least once: skip duplicates.
      if (message.seq <= progress.seq) continue;
      isWriting = true;
      await handle(message, write);
      [isWriting, heardMs] = [false, Date.now()];
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

/** Reconnects until the stream is complete. */
async function follow(job: string, write: Write): Promise<void> {
  for (let attempt = 0; !stop.signal.aborted; attempt++) {
    const before = progress.seq;
    let pauseMs = 0;
    let reason = "";
    try {
      if (token === "") await logIn();
      if (await isComplete(job)) return;
      const closed = await listen(job, write);
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
    print(
      `Connection lost (${reason}). Reconnecting in ${(pauseMs / 1_000).toFixed(1)} s after message ${progress.seq}.`,
    );
    await sleep(pauseMs, undefined, { signal: stop.signal }).catch(() => {});
  }
}

function print(text: string): void {
  const clear = process.stderr.isTTY ? "\r\u001b[K" : "";
  process.stderr.write(`${clear}${text}\n`);
}

/** Shows a progress bar in a terminal that shows no rows, otherwise a line every five seconds. */
function showProgress(): NodeJS.Timeout | undefined {
  if (options.quiet) return undefined;
  const hasBar = process.stderr.isTTY && (options.output !== undefined || !process.stdout.isTTY);
  const show = () => {
    const perSecond = Math.round((progress.rows * 1_000) / (Date.now() - progress.startedMs));
    const of =
      progress.estimated > 0 ? ` of about ${Math.max(progress.estimated, progress.rows).toLocaleString("en")}` : "";
    const text = `${progress.rows.toLocaleString("en")}${of} rows, ${perSecond.toLocaleString("en")}/s`;
    const full = progress.estimated > 0 ? Math.min(20, Math.round((20 * progress.rows) / progress.estimated)) : 0;
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
  const timer = showProgress();
  try {
    await follow(job, write);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    clearInterval(timer);
  }
  if (progress.failure !== "") throw new FatalError(`The job has failed: ${progress.failure}.`);
  if (progress.missing > 0) process.exitCode = 3;
  if (stop.signal.aborted) process.exitCode = 130;
  const rest = stop.signal.aborted ? ` To continue: npm run stream -- --job ${job}` : "";
  const lost = progress.missing > 0 ? ` ${progress.missing} MESSAGES ARE MISSING.` : "";
  if (!options.quiet || rest || lost) print(`Rows written: ${progress.rows.toLocaleString("en")}.${lost}${rest}`);
}

try {
  await main();
} catch (error) {
  print((error as Error).message);
  process.exitCode = 1;
}
