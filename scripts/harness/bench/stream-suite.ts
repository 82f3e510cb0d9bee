import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import { acknowledge, callbackPath, closeSockets, openSocket, seqOf, streamPath } from "../job-socket.ts";
import { until } from "../product.ts";
import { concurrencyLimiter, forEachConcurrently, Quantiles } from "../stats.ts";
import { StreamWorkload, sumVerdicts } from "../stream-oracle.ts";
import { cpuSeconds, residentMib } from "../usage.ts";
import { BARE } from "../workerd.ts";
import { generateLoad, problemsOf } from "../workload.ts";
import { type BenchContext, CONNECTIONS } from "./suite.ts";

/** From a callback to the job's sockets, next to a bare Durable Object that writes one row for each message and forwards it. */

const MIB = 1024 * 1024;
const ACKNOWLEDGE_EVERY = 50;
/** An idle object hibernates after some ten seconds. */
const ASLEEP_MS = 15_000;
/** Well beyond that, so that only what remains is measured. */
const IDLE_MS = 90_000;
const OPENING_AT_ONCE = 32;
/** workerd reuses the memory of objects that were awake, so the pace decides how many are awake at once: here 1,000. */
const OPENED_PER_SECOND = 100;

/** Something that takes a POST and forwards it to its sockets. */
interface Stream {
  url: string;
  pid: number;
  token?: string;
  postPath(name: string): string;
  socketPath(name: string): string;
  /** The bare object has no acknowledgements. */
  acknowledges: boolean;
}

const LOADS = [
  { jobs: 1, connections: 1, what: "one job, one callback after the other" },
  { jobs: 1, connections: CONNECTIONS, what: `one job, ${CONNECTIONS} callbacks at a time` },
  { jobs: 100, connections: CONNECTIONS, what: `100 jobs with a socket each, ${CONNECTIONS} callbacks at a time` },
];

export async function benchJobs(context: BenchContext): Promise<void> {
  const { product, report, seconds } = context;
  const { token } = await makeUser(product.dataDir, "bench@example.com");
  const ours: Stream = {
    url: product.url,
    pid: product.pidOf("worker"),
    token,
    acknowledges: true,
    postPath: callbackPath,
    socketPath: (name) => streamPath(name),
  };
  const echoPath = (name: string): string => `/echo/${name}`;
  const barePid = context.supervisor.pids[BARE] ?? 0;
  const echo = { postPath: echoPath, socketPath: echoPath, acknowledges: false };
  const bare: Stream = { url: context.bareUrl, pid: barePid, ...echo };

  // First of all, since later measurements leave free memory in both processes.
  const sockets = context.jobs ?? (context.isQuick ? 100 : 5_000);
  print(`Opening ${sockets} sockets at ${OPENED_PER_SECOND}/s on either, and waiting for ${IDLE_MS / 1000} s.`);
  const [bareIdle, idle] = [await memoryOfIdle(bare, sockets), await memoryOfIdle(ours, sockets)];
  for (const [moment, when] of MOMENTS) {
    const [floor, figure] = [bareIdle[moment], idle[moment]];
    const what = `bare object: ${sockets} sockets with an object each, ${when}`;
    report.add(what, floor.value, "KB", { details: floor.details });
    const wanted = moment === "idle" && { wanted: "at most 80 KB" };
    const ratio = { of: "the bare object", value: figure.value / floor.value, ...wanted };
    const details = figure.details;
    report.add(`${sockets} sockets with a job each, ${when}`, figure.value, "KB", { ratio, details });
  }

  for (const { what, ...load } of LOADS) {
    const floor = await throughSocket(bare, { ...load, seconds });
    report.add(`bare object: ${what}`, floor.perSecond, "messages/s", { details: floor.details });
    const { perSecond, lost, details } = await throughSocket(ours, { ...load, seconds });
    const of = "the bare object";
    report.add(`callback to socket: ${what}`, perSecond, "messages/s", {
      ratio: { of, value: perSecond / floor.perSecond, wanted: "at least 0.5" },
      details,
    });
    report.add(`its p99: ${what}`, details["p99 ms"], "ms", {
      ratio: { of, value: details["p99 ms"] / floor.details["p99 ms"], wanted: "at most 3" },
    });
    report.require({ what: "every message arrived", isKept: lost === 0, details: { lost } });
  }
}

const jobNames = (count: number): string[] => Array.from({ length: count }, () => crypto.randomUUID());

async function throughSocket(stream: Stream, load: { jobs: number; connections: number; seconds: number }) {
  const { jobs, connections, seconds } = load;
  const names = jobNames(jobs);
  const tookMs = new Quantiles();
  const sockets = await openAll(stream, names, (text, socket) => {
    tookMs.add(performance.now() - Number(/"sent_ms":([\d.]+)/.exec(text)?.[1]));
    if (!stream.acknowledges) return;
    const seq = seqOf(text);
    if (seq % ACKNOWLEDGE_EVERY === 0) acknowledge(socket, seq);
  });
  const cpuBefore = cpuSeconds(stream.pid);
  const { count, perSecond, failures } = await generateLoad({
    url: stream.url,
    connections,
    seconds,
    next: (connection, i) => ({
      method: "POST",
      path: stream.postPath(names[(connection + i * connections) % jobs] ?? ""),
      token: stream.token,
      body: `[{"n":${i},"sent_ms":${performance.now()},"text":"something that an agent has to say"}]`,
    }),
  });
  await until(() => tookMs.count >= count).catch(() => {});
  const cpuUs = (1e6 * (cpuSeconds(stream.pid) - cpuBefore)) / count;
  closeSockets(sockets);
  const quantiles = { "p50 ms": tookMs.at(0.5), "p99 ms": tookMs.at(0.99) };
  const failed = Object.keys(failures).length > 0 && { failures: JSON.stringify(failures) };
  const details = { ...quantiles, "CPU µs of workerd each": cpuUs, ...failed };
  return { perSecond: (perSecond * tookMs.count) / count, lost: count - tookMs.count, details };
}

const MOMENTS = [
  ["idle", `idle for ${IDLE_MS / 1000} s`],
  ["another", "one more, asleep, with memory that others have freed"],
] as const;

/** Returns the memory of one socket, by the growth of the process. */
async function memoryOfIdle(stream: Stream, count: number) {
  const openPaced = (many: number) => openAll(stream, jobNames(many), () => {}, OPENED_PER_SECOND);
  const since = (before: number, many: number) => {
    const now = residentMib(stream.pid);
    const details = { "workerd MiB before": before, "MiB with them": now };
    return { value: ((now - before) * MIB) / 1000 / many, details };
  };
  const more = Math.ceil(count / 10);
  const before = residentMib(stream.pid);
  const sockets = await openPaced(count);
  await sleep(IDLE_MS);
  const idle = since(before, count);
  const beforeMore = residentMib(stream.pid);
  sockets.push(...(await openPaced(more)));
  await sleep(ASLEEP_MS);
  const another = since(beforeMore, more);
  closeSockets(sockets);
  return { idle, another };
}

async function openAll(
  { url, token, socketPath }: Stream,
  names: readonly string[],
  onText: (text: string, socket: WebSocket) => void,
  perSecond = Number.POSITIVE_INFINITY,
): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  const startedMs = performance.now();
  const open = async ([i, name]: [number, string]): Promise<void> => {
    await sleep(Math.max(0, startedMs + (1000 * i) / perSecond - performance.now()));
    sockets.push(await openSocket({ url, path: socketPath(name), token, onText }));
  };
  await forEachConcurrently([...names.entries()], open, OPENING_AT_ONCE);
  return sockets;
}

const MESSAGES = 5;
const MAX_WAIT_MS = 120_000;

/** Opens very many sockets: each receives every message of its job, in order. */
export async function benchCrowd(context: BenchContext): Promise<void> {
  const { product, client, report, socketsPerJob } = context;
  const jobs = context.jobs ?? (context.isQuick ? 50 : 1_000);
  const total = jobs * socketsPerJob;
  const { token } = await makeUser(product.dataDir, "bench-crowd@example.com");
  const workerMib = () => residentMib(product.pidOf("worker"));
  const before = workerMib();
  const tookMs = new Quantiles();
  const sentMs = new Map<string, number>();
  const opening = concurrencyLimiter(OPENING_AT_ONCE);
  const onMessage = ({ data }: { data: unknown }) => {
    const [key] = data as [string];
    tookMs.add(performance.now() - (sentMs.get(key) ?? 0));
  };
  const options = { client, token, readers: socketsPerJob, opening, onMessage };
  const streams = Array.from({ length: jobs }, () => new StreamWorkload(options));
  const readers = streams.flatMap((stream) => stream.readers);

  print(`Opening ${total} sockets.`);
  const openingMs = performance.now();
  const stop = new AbortController();
  const reading = streams.flatMap((stream) => stream.read(stop.signal));
  await until(() => readers.every(({ socket }) => socket !== undefined), 10 * MAX_WAIT_MS);
  report.add(
    `sockets opened, ${total} in all, on ${jobs} jobs`,
    (1000 * total) / (performance.now() - openingMs),
    "/s",
    { details: { "workerd MiB before": before, "MiB with them": workerMib() } },
  );

  const postingMs = performance.now();
  const posts = Array.from({ length: jobs * MESSAGES }, (_, i) => i);
  const post = async (i: number): Promise<void> => {
    sentMs.set(String(i), performance.now());
    await streams[i % jobs]?.post(String(i));
  };
  await forEachConcurrently(posts, post, OPENING_AT_ONCE);
  await until(() => streams.every(({ isRead }) => isRead), MAX_WAIT_MS).catch(() => {});
  const quantiles = { "p50 ms": tookMs.at(0.5), "p99 ms": tookMs.at(0.99) };
  report.add(
    `messages delivered to them, ${MESSAGES} to each`,
    (1000 * tookMs.count) / (performance.now() - postingMs),
    "/s",
    { details: { ...quantiles, "workerd MiB": workerMib() } },
  );
  const closed = readers.reduce((sum, { closeCodes }) => sum + closeCodes.length, 0);
  const problems = problemsOf("messages", sumVerdicts(streams));
  report.require({
    what: "every socket received every message of its job, in order, and none was closed",
    isKept: problems.length === 0 && closed === 0 && tookMs.count === total * MESSAGES,
    details: { messages: tookMs.count, of: total * MESSAGES, closed, problems: problems.join("; ") || "none" },
  });
  stop.abort();
  await Promise.all(reading);
}
