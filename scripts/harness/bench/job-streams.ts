import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import { acknowledge, callbackPath, closeSockets, openSocket, seqOf, streamPath } from "../job-socket.ts";
import { until } from "../product.ts";
import { Quantiles } from "../stats.ts";
import { cpuSeconds, residentMib } from "../usage.ts";
import { BARE } from "../workerd.ts";
import { generateLoad } from "../workload.ts";
import type { BenchContext } from "./context.ts";

/** From a callback to the job's sockets, next to a bare Durable Object that writes one row for a message and sends it on. */

const MIB = 1024 * 1024;
const CONNECTIONS = 32;
const ACKNOWLEDGE_EVERY = 50;
/** An object that nobody asks anything goes to sleep after some ten seconds. */
const ASLEEP_MS = 15_000;
/** Well beyond that: nothing is left of the opening but what stays. */
const IDLE_MS = 90_000;
const OPENING_AT_ONCE = 32;
/** What an object takes while it is awake is kept for the next one: the pace decides how many are awake at once, here 1,000. */
const OPENED_PER_SECOND = 100;

/** Something that takes a POST and sends it to its sockets. */
interface Stream {
  url: string;
  pid: number;
  token?: string;
  postPath(name: string): string;
  socketPath(name: string): string;
  /** Readers of the bare object have nothing to acknowledge. */
  acknowledges: boolean;
}

export async function benchJobs(context: BenchContext): Promise<void> {
  const { product, report, isQuick } = context;
  const { token } = await makeUser(product.dataDir, "bench@example.com");
  const ours: Stream = {
    url: product.url,
    pid: product.pidOf("worker"),
    token,
    postPath: callbackPath,
    socketPath: (name) => streamPath(name),
    acknowledges: true,
  };
  const echoPath = (name: string): string => `/echo/${name}`;
  const bare: Stream = {
    url: context.bareUrl,
    pid: context.supervisor.pids[BARE] ?? 0,
    postPath: echoPath,
    socketPath: echoPath,
    acknowledges: false,
  };

  // First of all, while both are as they were started: later there is memory to spare from before.
  const sockets = context.jobs ?? (isQuick ? 100 : 5_000);
  print(
    `Opening ${sockets} sockets at ${OPENED_PER_SECOND}/s on either, and leaving them alone for ${IDLE_MS / 1000} s.`,
  );
  const bareIdle = await memoryOfIdle(bare, sockets);
  const idle = await memoryOfIdle(ours, sockets);
  for (const [moment, when] of MOMENTS) {
    report.add({ what: `bare object: ${sockets} sockets with an object each, ${when}`, ...bareIdle[moment] });
    report.add({
      ...(moment === "idle" && { id: "idle-socket" }),
      what: `${sockets} sockets with a job each, ${when}`,
      ...idle[moment],
      ratio: {
        of: "the bare object",
        value: idle[moment].value / bareIdle[moment].value,
        ...(moment === "idle" && { wanted: "at most 80 KB" }),
      },
    });
  }

  for (const { jobs, connections, what } of [
    { jobs: 1, connections: 1, what: "one job, one callback after the other" },
    { jobs: 1, connections: CONNECTIONS, what: `one job, ${CONNECTIONS} callbacks at a time` },
    { jobs: 100, connections: CONNECTIONS, what: `100 jobs with a socket each, ${CONNECTIONS} callbacks at a time` },
  ]) {
    const options = { jobs, connections, seconds: context.seconds };
    const floor = await throughSocket(bare, options);
    report.add({ what: `bare object: ${what}`, value: floor.perSecond, unit: "messages/s", details: floor.details });
    const { perSecond, lost, details } = await throughSocket(ours, options);
    report.add({
      ...(jobs > 1 && { id: "callback" }),
      what: `callback to socket: ${what}`,
      value: perSecond,
      unit: "messages/s",
      ratio: { of: "the bare object", value: perSecond / floor.perSecond, wanted: "at least 0.5" },
      details,
    });
    report.add({
      what: `its p99: ${what}`,
      value: details["p99 ms"],
      unit: "ms",
      ratio: { of: "the bare object", value: details["p99 ms"] / floor.details["p99 ms"], wanted: "at most 3" },
    });
    report.require({ what: "every message came", isKept: lost === 0, details: { lost } });
  }
}

interface ThroughOptions {
  jobs: number;
  connections: number;
  seconds: number;
}

async function throughSocket(stream: Stream, { jobs, connections, seconds }: ThroughOptions) {
  const jobNames = names(jobs);
  const tookMs = new Quantiles();
  const onText = (text: string, socket: WebSocket): void => {
    tookMs.add(performance.now() - Number(/"sent_ms":([\d.]+)/.exec(text)?.[1]));
    if (!stream.acknowledges) return;
    const seq = seqOf(text);
    if (seq % ACKNOWLEDGE_EVERY === 0) acknowledge(socket, seq);
  };
  const sockets = await openAll(stream, jobNames, { onText });
  const cpuBefore = cpuSeconds(stream.pid);
  const { count, perSecond, failures } = await generateLoad({
    url: stream.url,
    connections,
    seconds,
    next: (connection, i) => ({
      method: "POST",
      path: stream.postPath(jobNames[(connection + i * connections) % jobs] ?? ""),
      ...(stream.token !== undefined && { token: stream.token }),
      body: `[{"n":${i},"sent_ms":${performance.now()},"text":"something that an agent has to say"}]`,
    }),
  });
  await until(() => tookMs.count >= count).catch(() => {});
  const cpuUs = (1e6 * (cpuSeconds(stream.pid) - cpuBefore)) / count;
  closeSockets(sockets);
  return {
    perSecond: (perSecond * tookMs.count) / count,
    lost: count - tookMs.count,
    details: {
      "p50 ms": tookMs.at(0.5),
      "p99 ms": tookMs.at(0.99),
      "CPU µs of workerd each": cpuUs,
      ...(Object.keys(failures).length > 0 && { failures: JSON.stringify(failures) }),
    },
  };
}

const MOMENTS = [
  ["opened", "just opened"],
  ["idle", `idle for ${IDLE_MS / 1000} s`],
  ["another", "one more, asleep, when there is room from before"],
] as const;

/** What a socket takes at each moment, as the process grows. */
async function memoryOfIdle(stream: Stream, count: number) {
  const openPaced = (many: number) => openAll(stream, names(many), { perSecond: OPENED_PER_SECOND });
  const since = (before: number, many: number) => {
    const now = residentMib(stream.pid);
    const details = { "workerd MiB before": before, "MiB with them": now };
    return { value: ((now - before) * MIB) / 1000 / many, unit: "KB", details };
  };
  const more = Math.ceil(count / 10);
  const before = residentMib(stream.pid);
  const sockets = await openPaced(count);
  const opened = since(before, count);
  await sleep(IDLE_MS);
  const idle = since(before, count);
  const beforeMore = residentMib(stream.pid);
  sockets.push(...(await openPaced(more)));
  await sleep(ASLEEP_MS);
  const another = since(beforeMore, more);
  closeSockets(sockets);
  return { opened, idle, another };
}

const names = (count: number): string[] => Array.from({ length: count }, () => crypto.randomUUID());

interface OpenAllOptions {
  onText?: (text: string, socket: WebSocket) => void;
  /** As fast as it goes, unless told. */
  perSecond?: number;
}

async function openAll(
  { url, token, socketPath }: Stream,
  names: readonly string[],
  { onText = () => {}, perSecond = Number.POSITIVE_INFINITY }: OpenAllOptions = {},
): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  const queue = names.entries();
  const startedMs = performance.now();
  const lane = async (): Promise<void> => {
    for (const [i, name] of queue) {
      await sleep(Math.max(0, startedMs + (1000 * i) / perSecond - performance.now()));
      sockets.push(await openSocket({ url, path: socketPath(name), ...(token !== undefined && { token }), onText }));
    }
  };
  await Promise.all(Array.from({ length: OPENING_AT_ONCE }, lane));
  return sockets;
}
