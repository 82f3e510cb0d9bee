import { once } from "node:events";
import type { WebSocket } from "ws";
import { makeUser } from "../accounts.ts";
import { ApiClient } from "../client.ts";
import { openSocket, streamPath } from "../job-socket.ts";
import { until } from "../product.ts";
import { concurrencyLimiter, forEachConcurrently } from "../stats.ts";
import { type StreamOptions, type StreamReader, StreamWorkload, sumVerdicts } from "../stream-oracle.ts";
import { residentMib } from "../usage.ts";
import { problemsOf } from "../workload.ts";
import type { FaultEnvironment } from "./environment.ts";
import type { Outcome } from "./under-load.ts";

/** Faults of the clients of job streams. */

const CONNECTED_WITHIN_MS = 600_000;
const READ_WITHIN_MS = 120_000;

/** Opens streams for the work. Returns the verdict about all of them; the work adds what it measures. */
async function withStreams(
  { product: { url, dataDir } }: FaultEnvironment,
  readersOfJobs: readonly number[],
  options: Partial<StreamOptions>,
  work: (streams: StreamWorkload[], readers: StreamReader[], token: string) => Promise<Partial<Outcome>>,
): Promise<Outcome> {
  // Without the proxy, which would need two more descriptors for each socket.
  const client = new ApiClient(url);
  const { token } = await makeUser(dataDir, `faults-streams-${Date.now()}@example.com`);
  const streams = readersOfJobs.map((readers) => new StreamWorkload({ client, token, readers, ...options }));
  const stop = new AbortController();
  const reading = streams.flatMap((stream) => stream.read(stop.signal));
  const readers = streams.flatMap((stream) => stream.readers);
  try {
    await until(() => readers.every(({ socket }) => socket !== undefined), CONNECTED_WITHIN_MS);
    const { violations = [], ...more } = await work(streams, readers, token);
    const verdict = sumVerdicts(streams);
    const acknowledged = streams.reduce((sum, stream) => sum + stream.acknowledged.size, 0);
    const all = [...problemsOf("callbacks", verdict), ...violations];
    return { acknowledged, ...verdict, settledMs: 0, remarks: [], ...more, violations: all };
  } finally {
    stop.abort();
    await Promise.all(reading);
  }
}

/** Waits until all readers have everything. Returns how long that took; the verdict tells if it never happened. */
async function settle(streams: readonly StreamWorkload[], timeoutMs = READ_WITHIN_MS): Promise<number> {
  const startedMs = performance.now();
  await until(() => streams.every(({ isRead }) => isRead), timeoutMs).catch(() => {});
  return performance.now() - startedMs;
}

/** Waits until the service closes a socket. Returns the code, or "nothing" if that takes too long. */
export async function closeCodeOf(socket: WebSocket, timeoutMs = READ_WITHIN_MS): Promise<unknown> {
  const closed = once(socket, "close", { signal: AbortSignal.timeout(timeoutMs) });
  const [code] = await closed.catch(() => ["nothing"]);
  return code;
}

const CALLBACKS = 300;
const COPIES = 3;
const POSTS_AT_ONCE = 24;

/** Posts each callback three times, in random order and concurrently: every reader receives each once. */
export const shuffledCallbacks = (environment: FaultEnvironment, signal: AbortSignal): Promise<Outcome> =>
  withStreams(environment, [3], {}, async (streams) => {
    const [stream] = streams as [StreamWorkload];
    const keys = Array.from({ length: CALLBACKS * COPIES }, (_, i) => `callback-${i % CALLBACKS}`);
    const shuffled = keys.map((key) => ({ key, place: Math.random() })).toSorted((a, b) => a.place - b.place);
    await forEachConcurrently(shuffled, ({ key }) => stream.post(key, { signal }), POSTS_AT_ONCE);
    const settledMs = await settle(streams);
    const { size } = stream.acknowledged;
    const violations = size === CALLBACKS ? [] : [`${size} numbers were given to ${CALLBACKS} callbacks`];
    const remarks = [`${CALLBACKS} callbacks, each ${COPIES} times, to 3 readers`];
    return { settledMs, acknowledged: size * COPIES, violations, remarks };
  });

const SOCKETS_PER_JOB = 10;
const OPENING_AT_ONCE = 64;

/** Kills the Worker while very many sockets are open: all reconnect, and have everything in the end. */
export function crowd(environment: FaultEnvironment, sockets: number, signal: AbortSignal): Promise<Outcome> {
  const readersOfJobs = Array.from({ length: Math.ceil(sockets / SOCKETS_PER_JOB) }, (_, i) =>
    Math.min(SOCKETS_PER_JOB, sockets - i * SOCKETS_PER_JOB),
  );
  const opening = concurrencyLimiter(OPENING_AT_ONCE);
  return withStreams(environment, readersOfJobs, { opening }, async (streams, readers) => {
    const pid = environment.pidOf("worker");
    const memory = residentMib(pid);
    const post = (keys: string[]) => {
      const posts = streams.flatMap((stream) => keys.map((key) => () => stream.post(key, { signal })));
      return forEachConcurrently(posts, (one) => one(), OPENING_AT_ONCE);
    };
    await post(["first", "second"]);
    const before = readers.map(({ connections }) => connections);
    process.kill(pid, "SIGKILL");
    const killedMs = performance.now();
    const isBack = () =>
      readers.every(({ socket, connections }, i) => socket !== undefined && connections > (before[i] ?? 0));
    await until(isBack, CONNECTED_WITHIN_MS);
    const recoveredMs = performance.now() - killedMs;
    await post(["third", "fourth"]);
    const settledMs = await settle(streams, CONNECTED_WITHIN_MS);
    const remarks = [`${sockets} sockets on ${streams.length} jobs`, `workerd ${memory.toFixed(0)} MiB with them`];
    return { recoveredMs, settledMs, remarks };
  });
}

const KIB = 1024;
const MESSAGE_BYTES = 64 * KIB;
/** Less than a job retains, so that a reader that resumes finds everything. */
const MESSAGES = 200;
const PAUSED_JOBS = 8;
/** What may be buffered for one reader, and what the rest of the run may add. */
const BOUND_MIB = 16;
const SLACK_MIB = 256;

/** Posts one large message after the other. */
async function postLarge(stream: StreamWorkload, count: number, signal: AbortSignal): Promise<void> {
  const filler = "x".repeat(MESSAGE_BYTES);
  for (let n = 1; n <= count; n++) await stream.post(String(n), { data: { key: String(n), filler }, signal });
}

/** Pauses one of two readers of each job: memory stays bounded, the other reader does not wait, and no reader misses a message. */
export function pausedReaders(environment: FaultEnvironment, signal: AbortSignal): Promise<Outcome> {
  const readersOfJobs = new Array<number>(PAUSED_JOBS).fill(2);
  return withStreams(environment, readersOfJobs, {}, async (streams, readers) => {
    const paused = readers.filter((_, i) => i % 2 === 1);
    const reading = readers.filter((_, i) => i % 2 === 0);
    for (const { socket } of paused) socket?.pause();
    const workerMib = () => residentMib(environment.pidOf("worker"));
    const before = workerMib();
    await Promise.all(streams.map((stream) => postLarge(stream, MESSAGES, signal)));
    const violations: string[] = [];
    const isRead = until(() => reading.every(({ keys }) => keys.length >= MESSAGES), READ_WITHIN_MS);
    await isRead.catch(() => violations.push("readers waited for others that paused"));
    const [grownMib, boundMib] = [workerMib() - before, PAUSED_JOBS * BOUND_MIB + SLACK_MIB];
    const grown = `workerd grew by ${grownMib.toFixed(0)} MiB`;
    if (grownMib > boundMib) violations.push(`${grown}, more than ${boundMib}`);
    for (const { socket } of paused) socket?.resume();
    const recoveredMs = await settle(streams);
    const remarks = [
      `${PAUSED_JOBS} paused readers, ${((MESSAGES * MESSAGE_BYTES) / KIB ** 2).toFixed(1)} MiB for each`,
      grown,
      `closed with ${paused.flatMap(({ closeCodes }) => closeCodes).join(", ") || "nothing"}`,
    ];
    return { recoveredMs, violations, remarks };
  });
}

const CLOSED_SLOW = 1013;
const TO_THE_BOUND = (BOUND_MIB * KIB ** 2) / MESSAGE_BYTES;

/** Adds a socket that never reads to a job: it is closed at its bound, and the other readers receive everything, also afterwards. */
export const stalledReader = (environment: FaultEnvironment, signal: AbortSignal): Promise<Outcome> =>
  withStreams(environment, [3], { acknowledgeEvery: 1 }, async (streams, _, token) => {
    const [stream] = streams as [StreamWorkload];
    let received = 0;
    const onText = () => received++;
    const path = streamPath(stream.jobNumber);
    const stalled = await openSocket({ url: environment.product.url, path, token, onText });
    stalled.pause();
    await postLarge(stream, 2 * TO_THE_BOUND, signal);
    const settledMs = await settle(streams);
    // It reads now what was on its way, and the close at the end.
    stalled.resume();
    const code = await closeCodeOf(stalled);
    stalled.terminate();
    const isBounded = code === CLOSED_SLOW && received === TO_THE_BOUND - 1;
    const found = `the stalled socket was closed with ${code} after ${received} messages`;
    return { settledMs, violations: isBounded ? [] : [found], remarks: [found] };
  });
