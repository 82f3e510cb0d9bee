import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { print } from "../../../src/programs/shared/cli.ts";
import { acknowledge, callbackPath, closeSockets, openSocket, seqOf, streamPath } from "../job-socket.ts";
import { until } from "../product.ts";
import { concurrencyLimiter, forEachConcurrently, Quantiles } from "../stats.ts";
import { StreamWorkload, sumVerdicts, untilRead } from "../stream-oracle.ts";
import { cpuSeconds, residentMib, untilIdle } from "../usage.ts";
import { problemsOf } from "../workload.ts";
import { type BenchContext, CONNECTIONS, load } from "./suite.ts";

/** From a callback to the job's sockets, next to a bare Durable Object that writes one row for each message and forwards it. */

const MIB = 1024 * 1024;
const ACKNOWLEDGE_EVERY = 50;
const OPENING_AT_ONCE = 32;
/** workerd reuses the memory of objects that were awake, so the pace decides how many are awake at once: here 1,000. */
const OPENED_PER_SECOND = 100;

/** Something that takes a POST and forwards it to its sockets. */
export interface Stream {
  url: string;
  /** The name of the process that serves it. */
  process: string;
  pid: number;
  token?: string;
  postPath(name: string): string;
  socketPath(name: string): string;
}

const IDLE_S = 90;
/** An idle object hibernates after some ten seconds. */
const MOMENTS = [
  // Well beyond that, so that only what remains is measured.
  { share: 1, waitS: IDLE_S, when: `idle for ${IDLE_S} s`, wanted: "at most 80 KB" },
  { share: 0.1, waitS: 15, when: "one more, asleep, with memory that others have freed", wanted: undefined },
];

const LOADS = [
  { jobs: 1, connections: 1, what: "one job, one callback after the other" },
  { jobs: 1, connections: CONNECTIONS, what: `one job, ${CONNECTIONS} callbacks at a time` },
  { jobs: 100, connections: CONNECTIONS, what: `100 jobs with a socket each, ${CONNECTIONS} callbacks at a time` },
];

export async function benchJobs(context: BenchContext): Promise<void> {
  const { product, report } = context;
  const of = "the bare object";
  const echoPath = (name: string): string => `/echo/${name}`;
  const bare: Stream = { ...processOf(context.bare.url, context.bare.pid), postPath: echoPath, socketPath: echoPath };
  const paths = { postPath: callbackPath, socketPath: (name: string) => streamPath(name) };
  const ours: Stream = { ...processOf(product.url, product.pidOf("worker")), token: context.user.token, ...paths };

  // First of all, since later measurements leave free memory in both processes.
  const count = context.isQuick ? 100 : 5_000;
  print(`Opening ${count} sockets at ${OPENED_PER_SECOND}/s on either, and waiting for ${IDLE_S} s.`);
  const [bareIdle, idle] = [await memoryOfIdle(bare, count), await memoryOfIdle(ours, count)];
  for (const [i, { when, wanted }] of MOMENTS.entries()) {
    const [floor, figure] = [bareIdle[i], idle[i]];
    if (floor === undefined || figure === undefined) continue;
    report.add(`bare object: ${count} sockets with an object each, ${when}`, floor.kb, "KB", floor.details);
    const ratio = { of, value: figure.kb / floor.kb, wanted };
    report.add(`${count} sockets with a job each, ${when}`, figure.kb, "KB", figure.details, ratio);
  }

  for (const { what, jobs, connections } of LOADS) {
    const floor = await throughSocket(context, bare, jobs, connections);
    report.add(`bare object: ${what}`, floor.perSecond, "messages/s", floor.details);
    const { perSecond, lost, p99Ms, details } = await throughSocket(context, ours, jobs, connections);
    const ofRate = { of, value: perSecond / floor.perSecond, wanted: "at least 0.5" };
    report.add(`callback to socket: ${what}`, perSecond, "messages/s", details, ofRate);
    report.add(`its p99: ${what}`, p99Ms, "ms", {}, { of, value: p99Ms / floor.p99Ms, wanted: "at most 3" });
    report.require("every message arrived", lost === 0, { lost });
  }
}

const processOf = (url: string, pid: number) => ({ url, process: "workerd", pid });

const jobNames = (count: number): string[] => Array.from({ length: count }, () => crypto.randomUUID());

/** Posts to jobs with a socket each, and measures until the messages arrive there. */
export async function throughSocket(context: BenchContext, stream: Stream, jobs: number, connections: number) {
  const { url, process, pid, token, postPath } = stream;
  const names = jobNames(jobs);
  const tookMs = new Quantiles();
  const sockets = await openAll(stream, names, (text, socket) => {
    tookMs.add(performance.now() - Number(/"sent_ms":([\d.]+)/.exec(text)?.[1]));
    // Messages of the bare object have no number.
    const seq = seqOf(text);
    if (seq % ACKNOWLEDGE_EVERY === 0) acknowledge(socket, seq);
  });
  const cpuBefore = cpuSeconds(pid);
  const next = (connection: number, i: number) => ({
    path: postPath(names[(connection + i * connections) % jobs] ?? ""),
    token,
    body: `[{"n":${i},"sent_ms":${performance.now()},"text":"something that an agent has to say"}]`,
  });
  const { count, perSecond, details } = await load(context, next, { url, connections });
  await until(() => tookMs.count >= count).catch(() => {});
  const cpuUs = (1e6 * (cpuSeconds(pid) - cpuBefore)) / count;
  closeSockets(sockets);
  return {
    perSecond: (perSecond * tookMs.count) / count,
    lost: count - tookMs.count,
    p99Ms: tookMs.at(0.99),
    details: { ...details, ...tookMs.details(), [`CPU µs of ${process} each`]: cpuUs },
  };
}

/** Returns the memory of one socket at each moment, by the growth of the process. */
async function memoryOfIdle(stream: Stream, sockets: number) {
  const opened: WebSocket[] = [];
  const figures = [];
  for (const { share, waitS } of MOMENTS) {
    const count = Math.ceil(sockets * share);
    const before = residentMib(stream.pid);
    opened.push(...(await openAll(stream, jobNames(count), () => {}, OPENED_PER_SECOND)));
    await sleep(waitS * 1000);
    const now = residentMib(stream.pid);
    const details = { "workerd MiB before": before, "MiB with them": now };
    figures.push({ kb: ((now - before) * MIB) / 1000 / count, details });
  }
  closeSockets(opened);
  // Each job ends with its socket. The next measurement must not share the process with thousands of ends.
  await untilIdle(stream.pid);
  return figures;
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

const SOCKETS_PER_JOB = 10;
const MESSAGES = 5;
const MAX_WAIT_MS = 120_000;

/** Opens very many sockets: each receives every message of its job, in order. */
export async function benchCrowd({ product, client, user, isQuick, report }: BenchContext): Promise<void> {
  const jobs = isQuick ? 50 : 1_000;
  const total = jobs * SOCKETS_PER_JOB;
  const workerMib = () => residentMib(product.pidOf("worker"));
  const before = workerMib();
  const tookMs = new Quantiles();
  const sentMs = new Map<string, number>();
  const opening = concurrencyLimiter(OPENING_AT_ONCE);
  const onMessage = ({ data }: { data: unknown }) => {
    const [key] = data as [string];
    tookMs.add(performance.now() - (sentMs.get(key) ?? 0));
  };
  const options = { client, token: user.token, readers: SOCKETS_PER_JOB, opening, onMessage };
  const streams = Array.from({ length: jobs }, () => new StreamWorkload(options));
  const readers = streams.flatMap((stream) => stream.readers);
  const perSecondSince = (startedMs: number, count: number) => (1000 * count) / (performance.now() - startedMs);

  print(`Opening ${total} sockets.`);
  const openingMs = performance.now();
  const stop = new AbortController();
  const reading = streams.flatMap((stream) => stream.read(stop.signal));
  await until(() => readers.every(({ socket }) => socket !== undefined), 10 * MAX_WAIT_MS);
  const memory = { "workerd MiB before": before, "MiB with them": workerMib() };
  report.add(`sockets opened, ${total} in all, on ${jobs} jobs`, perSecondSince(openingMs, total), "/s", memory);

  const postingMs = performance.now();
  const post = async (i: number): Promise<void> => {
    sentMs.set(String(i), performance.now());
    await streams[i % jobs]?.post(String(i));
  };
  await forEachConcurrently([...Array(jobs * MESSAGES).keys()], post, OPENING_AT_ONCE);
  await untilRead(streams, MAX_WAIT_MS);
  const perSecond = perSecondSince(postingMs, tookMs.count);
  const details = { ...tookMs.details(), "workerd MiB": workerMib() };
  report.add(`messages delivered to them, ${MESSAGES} to each`, perSecond, "/s", details);
  const closed = readers.reduce((sum, { closeCodes }) => sum + closeCodes.length, 0);
  const problems = problemsOf("messages", sumVerdicts(streams));
  report.require(
    "every socket received every message of its job, in order, and none was closed",
    problems.length === 0 && closed === 0 && tookMs.count === total * MESSAGES,
    { messages: tookMs.count, of: total * MESSAGES, closed, problems: problems.join("; ") || "none" },
  );
  stop.abort();
  await Promise.all(reading);
}
