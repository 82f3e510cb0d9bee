import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { makeAgents, makeUser } from "../trial/accounts.ts";
import { BARE } from "../trial/bare.ts";
import { acknowledge, callbackPath, closeSockets, openSocket, seqOf, streamPath } from "../trial/job-socket.ts";
import { load } from "../trial/load.ts";
import { until } from "../trial/product.ts";
import { Quantiles } from "../trial/quantiles.ts";
import type { BenchContext } from "./context.ts";
import { readHistory, seedHistory } from "./history.ts";
import { cpuSeconds, residentMib } from "./usage.ts";

/** From a callback to the job's sockets, next to a bare Durable Object that writes one row for a message and sends it on. */

const CONNECTIONS = 32;
const ACKNOWLEDGE_EVERY = 50;
/** An object that nobody asks anything goes to sleep after some ten seconds. */
const ASLEEP_MS = 15_000;
const OPENING_AT_ONCE = 32;

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
  const sockets = isQuick ? 100 : 1_000;
  const bareIdle = await memoryOfIdle(bare, sockets);
  report.add({ what: `bare object: an idle socket, of ${sockets} with an object each`, ...bareIdle });
  const idle = await memoryOfIdle(ours, sockets);
  report.add({
    what: `an idle socket, of ${sockets} with a job each`,
    ...idle,
    ratio: { of: "the bare object", value: idle.value / bareIdle.value },
  });

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
      what: `callback to socket: ${what}`,
      value: perSecond,
      unit: "messages/s",
      ratio: { of: "the bare object", value: perSecond / floor.perSecond, wanted: "at least 0.5" },
      details,
    });
    report.require({ what: "every message came", isKept: lost === 0, details: { lost } });
  }

  const rows = isQuick ? 20_000 : 200_000;
  const [agent] = await makeAgents(product.dataDir, "bench-jobs", 1);
  const range = await seedHistory(product, agent?.apId ?? "", rows);
  const history = await readHistory(product, token, range);
  report.add({
    what: "history through the socket",
    value: history.rowsPerSecond,
    unit: "rows/s",
    details: { rows: history.rows },
  });
}

interface ThroughOptions {
  jobs: number;
  connections: number;
  seconds: number;
}

async function throughSocket(stream: Stream, { jobs, connections, seconds }: ThroughOptions) {
  const names = Array.from({ length: jobs }, () => crypto.randomUUID());
  const tookMs = new Quantiles();
  const onText = (text: string, socket: WebSocket): void => {
    tookMs.add(performance.now() - Number(/"sent_ms":([\d.]+)/.exec(text)?.[1]));
    if (!stream.acknowledges) return;
    const seq = seqOf(text);
    if (seq % ACKNOWLEDGE_EVERY === 0) acknowledge(socket, seq);
  };
  const sockets = await openAll(stream, names, onText);
  const cpuBefore = cpuSeconds(stream.pid);
  const { count, perSecond, failures } = await load({
    url: stream.url,
    connections,
    seconds,
    next: (connection, i) => ({
      method: "POST",
      path: stream.postPath(names[(connection + i * connections) % jobs] ?? ""),
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

async function memoryOfIdle(stream: Stream, count: number) {
  const before = residentMib(stream.pid);
  const names = Array.from({ length: count }, () => crypto.randomUUID());
  const sockets = await openAll(stream, names);
  await sleep(ASLEEP_MS);
  const after = residentMib(stream.pid);
  closeSockets(sockets);
  return {
    value: ((after - before) * 1024) / count,
    unit: "KiB",
    details: { "workerd MiB before": before, "MiB with them": after },
  };
}

async function openAll(
  { url, token, socketPath }: Stream,
  names: readonly string[],
  onText: (text: string, socket: WebSocket) => void = () => {},
): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  const queue = names.values();
  const lane = async (): Promise<void> => {
    for (const name of queue)
      sockets.push(await openSocket({ url, path: socketPath(name), ...(token !== undefined && { token }), onText }));
  };
  await Promise.all(Array.from({ length: OPENING_AT_ONCE }, lane));
  return sockets;
}
