/**
 * A small agent that reports metrics of this machine: an example for authors of agents. It is a single file to copy, and needs only Node
 * and `mqtt`.
 */
import { readFileSync } from "node:fs";
import { cpus, freemem, hostname, loadavg, totalmem, uptime } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connectAsync } from "mqtt";

const HELP = `Usage: npm run agent

Logs in as an agent, onboards, and reports the load, memory and network counters of this machine until Ctrl-C.

Settings:
  SERVICE_URL          URL of the controller (default: http://127.0.0.1:8787)
  AP_ID                ap_id of the agent (default: the name of this machine)
  AP_PASSWORD          Password of the agent
  ENROLMENT_TOKEN      Register the agent first, with this token
  INTERVAL             Seconds between two reports (default: 5)
  LATITUDE, LONGITUDE  Position of the access point
  MQTT_URL             Report to this broker instead of over HTTP, and execute commands: "ping", "interval <seconds>".
                       Several nodes of a broker are separated by commas

Options:
  -h, --help           Show this help`;

const { SERVICE_URL, AP_ID, AP_PASSWORD = "", ENROLMENT_TOKEN, LATITUDE, LONGITUDE, MQTT_URL } = process.env;
const service = SERVICE_URL || "http://127.0.0.1:8787";
const apId = AP_ID || hostname();
/** A day. Node's timers are limited to about 24 days. */
const MAX_INTERVAL_S = 86_400;
/** The next connection is made to the first of these. */
const brokers = (MQTT_URL ?? "").split(",");
let intervalS = Number(process.env.INTERVAL || 5);

async function call(path: string, init: RequestInit): Promise<Record<string, unknown>> {
  const response = await fetch(`${service}/api/v1/${path}`, { signal: AbortSignal.timeout(10_000), ...init });
  const body = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(body.detail)}`);
  return body;
}

const postJson = (path: string, token: string, body: object) =>
  call(path, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

/** Returns a token, and the time at which to request the next one. */
async function logIn(): Promise<{ token: string; renewAtMs: number }> {
  const body = new URLSearchParams({ username: apId, password: AP_PASSWORD });
  const { access_token, expires_in } = await call("token/?login_type=agent", { method: "POST", body });
  return { token: String(access_token), renewAtMs: Date.now() + Number(expires_in) * 900 };
}

function sample(): object {
  const [oneMinute = 0] = loadavg();
  return {
    ts: Date.now(),
    payload: {
      load: oneMinute / cpus().length,
      memory_used_pct: 100 * (1 - freemem() / totalmem()),
      uptime_s: uptime(),
      network: networkCounters(),
    },
  };
}

/** Returns the bytes received and sent over all interfaces except the loopback. */
function networkCounters(): { rx_bytes: number; tx_bytes: number } {
  const counters = { rx_bytes: 0, tx_bytes: 0 };
  for (const line of readFileSync("/proc/net/dev", "utf8").split("\n").slice(2)) {
    const [name = "", numbers = ""] = line.split(":");
    const [received, , , , , , , , sent] = numbers.trim().split(/\s+/).map(Number);
    if (name.trim() === "lo") continue;
    counters.rx_bytes += received || 0;
    counters.tx_bytes += sent || 0;
  }
  return counters;
}

/** Opens a channel for reports: HTTP, or a connection to the broker, which also delivers commands. */
async function openChannel(
  token: string,
): Promise<{ report: (body: object) => Promise<unknown>; close: () => Promise<unknown> }> {
  if (!MQTT_URL) return { report: (body) => postJson("agent_update/update", token, body), close: async () => {} };
  const will = { topic: `agent/${apId}/status`, payload: Buffer.from("offline"), qos: 1, retain: true } as const;
  const broker = brokers.shift() ?? "";
  brokers.push(broker);
  // Some brokers require this client id: docs/brokers.md.
  const login = { clientId: `agent/${apId}`, username: apId, password: token };
  const client = await connectAsync(broker.trim(), { ...login, reconnectPeriod: 0, will });
  client.on("error", printError);
  // When the connection is lost, the promises of the client for messages in flight never settle.
  const lost = new Promise<never>((_, reject) =>
    client.once("close", () => reject(new Error("Connection to the broker lost."))),
  );
  lost.catch(() => {});
  const publish = (topic: string, text: string, retain = false) =>
    Promise.race([client.publishAsync(topic, text, { qos: 1, retain }), lost]);
  client.on("message", (_topic, payload) => {
    try {
      const result = handleCommand(payload.toString());
      if (result !== undefined) publish(`agent/${apId}/result`, JSON.stringify(result)).catch(printError);
    } catch (error) {
      printError(error);
    }
  });
  try {
    await publish(will.topic, "online", true);
    await Promise.race([client.subscribeAsync(`agent/${apId}/command`, { qos: 1 }), lost]);
  } catch (error) {
    client.end(true);
    throw error;
  }
  return {
    report: (body) => publish(`agent/${apId}/data`, JSON.stringify(body)),
    // Forced: a regular disconnect would wait for messages in flight, and the broker would not publish the last will.
    close: () => client.endAsync(true),
  };
}

/** Results by job number, until their commands expire. */
const results = new Map<string, { expiresMs: number; result: object }>();
const MAX_RESULTS = 1_000;

/**
 * Executes a command and returns its result. Returns undefined for an invalid or expired command.
 *
 * The controller publishes a command again until it has the result, so the same command may arrive several times. The agent executes it
 * once, and sends the stored result again, because the first may have been lost. It does not execute an expired command: the controller
 * has already reported it as failed. If the effect of a command outlives this process, store its job number on disk before executing it.
 */
function handleCommand(message: string): object | undefined {
  const { job_number, command, expires_at } = JSON.parse(message) as Record<string, unknown>;
  if (typeof job_number !== "string" || typeof command !== "string") return undefined;
  const expiresMs = Date.parse(String(expires_at));
  if (!(expiresMs >= Date.now())) return undefined;
  const known = results.get(job_number);
  if (known !== undefined) return known.result;
  const result = { job_number, ...execute(command) };
  for (const [job, { expiresMs }] of results)
    if (expiresMs < Date.now() || results.size >= MAX_RESULTS) results.delete(job);
  results.set(job_number, { expiresMs, result });
  return result;
}

function execute(command: string): { status: string; data: object } {
  const [verb, argument] = command.split(" ");
  const isInterval = verb === "interval" && Number(argument) > 0 && Number(argument) <= MAX_INTERVAL_S;
  if (isInterval) intervalS = Number(argument);
  const isKnown = verb === "ping" || isInterval;
  return { status: isKnown ? "done" : "failed", data: { command, interval: intervalS } };
}

const printError = (error: unknown) => console.log(error instanceof Error ? error.message : error);

/** Reports from one login to the next. Throws when a report fails. */
async function reportUntilRenewal(stop: AbortSignal): Promise<void> {
  const { token, renewAtMs } = await logIn();
  const channel = await openChannel(token);
  try {
    const configuration = { interval: intervalS, host: hostname(), commands: ["ping", "interval"] };
    const geolocation = LATITUDE && LONGITUDE ? { geolocation: { latitude: LATITUDE, longitude: LONGITUDE } } : {};
    await channel.report({ configuration, ...geolocation });
    console.log(`${apId} reports every ${intervalS} s.`);
    while (!stop.aborted && Date.now() < renewAtMs) {
      await channel.report(sample());
      await sleep(intervalS * 1000, undefined, { signal: stop }).catch(() => {});
    }
  } finally {
    await channel.close();
  }
}

const { values } = parseArgs({ options: { help: { type: "boolean", short: "h", default: false } } });
if (values.help) console.log(HELP);
else {
  const stop = new AbortController();
  let stoppedMs = Number.POSITIVE_INFINITY;
  const interrupt = () => {
    // The terminal and npm both send the signal, so the first Ctrl-C arrives twice. A later one exits at once.
    if (Date.now() - stoppedMs > 500) process.exit(130);
    if (!stop.signal.aborted) stoppedMs = Date.now();
    stop.abort();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
  if (ENROLMENT_TOKEN) {
    const agent = { ap_id: apId, password: AP_PASSWORD, configuration: {} };
    await postJson("agents/public", ENROLMENT_TOKEN, agent).catch(printError);
  }
  while (!stop.signal.aborted) {
    await reportUntilRenewal(stop.signal).catch(printError);
    await sleep(1_000, undefined, { signal: stop.signal }).catch(() => {});
  }
}
