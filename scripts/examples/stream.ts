/**
 * A small client of job streams that loses nothing and doubles nothing: a starting point for authors of clients. It is one file, which
 * needs Node and `ws` and nothing else of this project, so that it can be copied.
 */
import { on } from "node:events";
import { createWriteStream, openSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";

const HELP = `npm run stream -- --agent <ap_id> --from <time> [--to <time> | --follow <duration>]
npm run stream -- --details
npm run stream -- --job <number>

Asks for an agent's data, or for the details of all agents, and writes the rows as they come; or takes up a job that is there.

  --from, --to <time>  RFC 3339 (without an offset: UTC), the epoch, or so long ago: 90s, 15m, 2h, 7d. --to: now
  --follow <duration>  from now on for so long, with what comes
  --format <format>    ndjson (the default) or csv
  --output <file>      instead of standard output; written anew, but with --job appended to
  --stay               go on after the last message of the service's own, with what others post to the job
  --quiet              no progress

  SERVICE_URL                  the service (http://127.0.0.1:8787)
  STREAM_USER, STREAM_PASSWORD e-mail and password, app_name and api_key, or ap_id and password
  LOGIN_TYPE                   which of them: user (the default), third_party_app or agent
  TOKEN                        instead of all that: a token, for as long as it lasts

Ends with 0 when all has been written, 1 when it cannot be, 3 when the service no longer had some of it, 130 after Ctrl-C. Rows
that were written are not sent again: --job goes on after them.`;

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
    say(`${(error as Error).message}. See --help.`);
    process.exit(1);
  }
}

/** What trying again does not mend. */
class Refused extends Error {}
/** What the service answered. */
class Answered extends Error {
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
/** How far we have come. `seq` is the last message that the output has taken. */
const at = { seq: 0, rows: 0, estimated: 0, missing: 0, unfit: 0, failure: "", startedMs: Date.now() };

async function call(path: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const headers: Record<string, string> = token === "" ? {} : { Authorization: `Bearer ${token}` };
  const timeout = AbortSignal.timeout(10_000);
  const response = await fetch(`${service}/api/v1/${path}`, { signal: timeout, headers, ...init }).catch((error) => {
    throw new Error(`${service} cannot be reached: ${error.cause?.code ?? error.message}`);
  });
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return answer;
  const { detail = response.statusText } = answer;
  const faults = Array.isArray(detail) ? detail.map(({ loc, msg }) => `${loc.at(-1)}: ${msg}`).join("; ") : detail;
  throw new Answered(String(faults), response.status, response.headers.get("Retry-After"));
}

async function logIn(): Promise<void> {
  if (!STREAM_USER && TOKEN !== "") throw new Refused("TOKEN is not good, or no longer.");
  if (!STREAM_USER) throw new Refused("Who are you? Give STREAM_USER and STREAM_PASSWORD, or TOKEN; see --help.");
  const body = new URLSearchParams({ username: STREAM_USER, password: STREAM_PASSWORD });
  const { access_token } = await call(`token/?login_type=${LOGIN_TYPE}`, { method: "POST", body }).catch((error) => {
    throw error instanceof Answered && error.status < 429 ? new Refused(`${STREAM_USER}: ${error.message}.`) : error;
  });
  token = String(access_token);
}

const UNITS_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
function durationMs(text: string): number | undefined {
  const [, number, unit = ""] = /^(\d+)([smhd])$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (UNITS_MS[unit] ?? 0);
}

/** The number of the job to follow, and its kind. */
async function findJob(): Promise<{ job: string; kind: string }> {
  const { agent, details, job, from, to, follow } = options;
  if ([agent, details, job].filter(Boolean).length !== 1)
    throw new Refused("Give --agent, --details or --job; see --help.");
  if (job) {
    const known = await read(job);
    if (known === undefined) say("Nobody has used this number yet: waiting for what is posted to it.");
    return { job, kind: String(known?.kind ?? "stream") };
  }
  if (details) {
    const { job_number } = await call("agent_details/request_all_agents_details", { method: "POST" });
    return { job: String(job_number), kind: "agent_details" };
  }
  if (!from || (to && follow)) throw new Refused("--agent needs --from, and --to or --follow at the most.");
  const [nowMs, followMs] = [Date.now(), durationMs(follow ?? "0s")];
  if (followMs === undefined) throw new Refused("--follow takes a duration: 90s, 15m, 2h, 7d.");
  const time = (text: string) => String(nowMs - (durationMs(text) ?? Number.NaN)).replace("NaN", text);
  const query = { agent_id: agent ?? "", start_time: time(from), end_time: to ? time(to) : String(nowMs + followMs) };
  const path = `agent_data/request_agent_data?${new URLSearchParams(query)}`;
  return { job: String((await call(path, { method: "POST" })).job_number), kind: "agent_data" };
}

/** What the service knows of the job; nothing where nobody has used its number. */
async function read(job: string): Promise<Record<string, unknown> | undefined> {
  return await call(`jobs/${encodeURIComponent(job)}`).catch((error) => {
    if (error instanceof Answered && error.status === 404) return undefined;
    throw error;
  });
}

/** Whether all has been written that the service itself has for the job. Its last message does not come twice. */
async function isOver(job: string): Promise<boolean> {
  const known = options.stay ? undefined : await read(job);
  const isDone = known?.state === "done" || known?.state === "failed";
  return isDone && Number(known?.messages) <= Math.max(at.seq, Number(known?.acknowledged_up_to));
}

const COLUMNS: Record<string, string[]> = {
  agent_data: ["time", "field", "value"],
  agent_details: ["id", "ap_id", "onboard", "configuration"],
};
function cell(value: unknown): string {
  const text = typeof value === "string" ? value : value == null ? "" : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes rows; done when the output has taken them. */
type Write = (rows: unknown[]) => Promise<void>;

async function openOutput(kind: string): Promise<Write> {
  const { format, output: file, job } = options;
  const columns = COLUMNS[kind];
  if (format !== "ndjson" && format !== "csv") throw new Refused("--format is ndjson or csv.");
  if (format === "csv" && columns === undefined) throw new Refused("CSV is for agents' data and details only.");
  const isBegun = file !== undefined && job !== undefined && (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
  const open = (path: string) => createWriteStream(path, { fd: openSync(path, job === undefined ? "w" : "a") });
  const output = file === undefined ? process.stdout : open(file);
  // Each failure is also told to whoever writes.
  output.on("error", () => {});
  const put = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const fail = ({ code, message }: NodeJS.ErrnoException) =>
        reject(new Refused(code === "EPIPE" ? "Nobody reads the output any more." : `The output fails: ${message}`));
      output.write(text, (error) => (error ? fail(error) : resolve()));
    });
  if (format === "ndjson" || columns === undefined) {
    return async (rows) => await put(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  }
  if (!isBegun) await put(`${columns.join()}\n`);
  return async (rows) => {
    const fit = rows.filter((row) => columns.every((column) => Object.hasOwn(Object(row), column)));
    if (fit.length < rows.length && at.unfit === 0)
      say("Some of what was posted to the job fits no column: see it as ndjson.");
    at.unfit += rows.length - fit.length;
    const lines = fit.map((row) => columns.map((column) => cell((row as Record<string, unknown>)[column])).join());
    await put(lines.map((line) => `${line}\n`).join(""));
  };
}

async function take({ seq, type, data }: Message, write: Write): Promise<void> {
  if (type === "gap") {
    for (const { from_seq, to_seq } of data as { from_seq: number; to_seq: number }[]) {
      at.missing += to_seq - from_seq + 1;
      say(`ROWS ARE LOST: the service no longer has the messages ${from_seq} to ${to_seq}.`);
    }
  } else if (type === "status" || type === "error") {
    const { rows_estimated, detail } = data as { rows_estimated?: number | null; detail?: string };
    at.estimated = rows_estimated ?? 0;
    if (type === "error") at.failure = detail ?? "The job has failed";
  } else {
    const rows = [data].flat();
    if (rows.length > 0) await write(rows);
    at.rows += rows.length;
  }
  at.seq = seq;
}

const PING_EVERY_MS = 30_000;
const SILENT_MS = 60_000;

/** One connection, to its end. Says why that was: nothing where there is no more to come. */
async function listen(job: string, write: Write): Promise<{ code: number; reason: string } | undefined> {
  const after = at.seq > 0 ? `?after=${at.seq}` : "";
  // Where the service has closed, its end of the connection may stay open for a while; nothing comes from there any more.
  const settings = { headers: { Authorization: `Bearer ${token}` }, handshakeTimeout: 10_000, closeTimeout: 1_000 };
  const socket = new WebSocket(
    `${service.replace(/^http/, "ws")}/api/v1/ws/${encodeURIComponent(job)}${after}`,
    settings,
  );
  let closed = { code: 1006, reason: "" };
  let refusal: Answered | undefined;
  socket.on("close", (code, reason) => {
    closed = { code, reason: reason.toString() };
  });
  socket.on("unexpected-response", (_request, { statusCode = 0, statusMessage = "", headers }) => {
    refusal = new Answered(statusMessage, statusCode, headers["retry-after"]);
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
    // The connection is not read from while some messages wait for the output.
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
      // At least once is what the service promises.
      if (message.seq <= at.seq) continue;
      isWriting = true;
      await take(message, write);
      [isWriting, heardMs] = [false, Date.now()];
      socket.send(JSON.stringify({ ack: message.seq }));
      if (message.final && !options.stay) return undefined;
      if (message.type === "gap" && (await isOver(job))) return undefined;
      if (stop.signal.aborted) break;
    }
    return closed;
  } catch (error) {
    throw refusal ?? error;
  } finally {
    clearInterval(keepAlive);
    socket.close(1000);
  }
}

/** Connection after connection, until there is no more to come. */
async function follow(job: string, write: Write): Promise<void> {
  for (let attempt = 0; !stop.signal.aborted; attempt++) {
    const before = at.seq;
    let pauseMs = 0;
    let reason = "";
    try {
      if (token === "") await logIn();
      if (await isOver(job)) return;
      const closed = await listen(job, write);
      if (closed === undefined) return;
      const { code } = closed;
      reason = closed.reason || `code ${code}`;
      if (code === 4401) token = "";
      else if (code === 4403 || code === 4410 || code === 1008 || code === 1009) throw new Refused(`${reason}.`);
    } catch (error) {
      if (error instanceof Refused || stop.signal.aborted) throw error;
      reason = String((error as Error).message);
      if (error instanceof Answered) {
        if (error.status === 401) token = "";
        else if (error.status < 429) throw new Refused(`${reason}.`);
        pauseMs = error.retryAfterS * 1_000;
      }
    }
    if (at.seq > before) attempt = 0;
    pauseMs = Math.max(pauseMs, Math.min(30_000, 250 * 2 ** attempt) * (0.5 + Math.random() / 2));
    say(`Connection lost (${reason}); again in ${(pauseMs / 1_000).toFixed(1)} s, after message ${at.seq}.`);
    await sleep(pauseMs, undefined, { signal: stop.signal }).catch(() => {});
  }
}

function say(text: string): void {
  const clear = process.stderr.isTTY ? "\r\u001b[K" : "";
  process.stderr.write(`${clear}${text}\n`);
}

/** A bar where somebody looks and rows do not run through it, else a line now and then. */
function showProgress(): NodeJS.Timeout | undefined {
  if (options.quiet) return undefined;
  const hasBar = process.stderr.isTTY && (options.output !== undefined || !process.stdout.isTTY);
  const show = () => {
    const perSecond = Math.round((at.rows * 1_000) / (Date.now() - at.startedMs));
    const of = at.estimated > 0 ? ` of about ${Math.max(at.estimated, at.rows).toLocaleString("en")}` : "";
    const text = `${at.rows.toLocaleString("en")}${of} rows, ${perSecond.toLocaleString("en")}/s`;
    const full = at.estimated > 0 ? Math.min(20, Math.round((20 * at.rows) / at.estimated)) : 0;
    if (hasBar) process.stderr.write(`\r[${"#".repeat(full).padEnd(20)}] ${text}\u001b[K`);
    else say(text);
  };
  return setInterval(show, hasBar ? 200 : 5_000);
}

async function main(): Promise<void> {
  if (options.help) return console.log(HELP);
  let interruptedMs = Number.POSITIVE_INFINITY;
  const interrupt = () => {
    // The terminal and npm both send it, so the first one comes twice. A later one is meant.
    if (Date.now() - interruptedMs > 500) process.exit(130);
    if (!stop.signal.aborted) interruptedMs = Date.now();
    stop.abort();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
  if (token === "") await logIn();
  const { job, kind } = await findJob();
  const write = await openOutput(kind);
  if (!options.quiet) say(`Job ${job}`);
  const progress = showProgress();
  try {
    await follow(job, write);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    clearInterval(progress);
  }
  if (at.failure !== "") throw new Refused(`The job has failed: ${at.failure}.`);
  if (at.missing > 0) process.exitCode = 3;
  if (stop.signal.aborted) process.exitCode = 130;
  const rest = stop.signal.aborted ? ` What is left: npm run stream -- --job ${job}` : "";
  const lost = at.missing > 0 ? ` ${at.missing} MESSAGES WITH ROWS ARE LOST.` : "";
  if (!options.quiet || rest || lost) say(`Rows written: ${at.rows.toLocaleString("en")}.${lost}${rest}`);
}

try {
  await main();
} catch (error) {
  say((error as Error).message);
  process.exitCode = 1;
}
