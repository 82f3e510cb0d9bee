import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { makeUser } from "../accounts.ts";
import { callbackPath, closeSockets, openSocket, seqOf, streamPath } from "../job-socket.ts";
import { until } from "../product.ts";
import { forEachConcurrently } from "../stats.ts";
import { Target } from "../target.ts";
import { residentMib } from "../usage.ts";
import type { Outcome } from "./row.ts";
import type { World } from "./world.ts";

/** Very many sockets at once, and workerd dies: all come back, and have everything in the end. */

const SOCKETS_PER_JOB = 10;
const MESSAGES_BEFORE = 2;
const MESSAGES_AFTER = 2;
const AT_ONCE = 64;
const RETRY_MS = 250;
const WITHIN_MS = 600_000;

interface Reader {
  jobNumber: string;
  lastSeq: number;
  faults: number;
  socket: WebSocket | undefined;
}

export async function crowd(world: World, sockets: number, signal: AbortSignal): Promise<Outcome> {
  const { product } = world;
  // Not over the line, which would take two more descriptors for each socket.
  const target = new Target(product);
  const { token } = await makeUser(target.dataDir, `faults-crowd-${Date.now()}@example.com`);
  const jobs = Array.from({ length: Math.ceil(sockets / SOCKETS_PER_JOB) }, () => crypto.randomUUID());
  const readers = Array.from({ length: sockets }, (_, i): Reader => {
    return { jobNumber: jobs[i % jobs.length] ?? "", lastSeq: 0, faults: 0, socket: undefined };
  });

  /** Again and again until it is open. */
  const open = async (reader: Reader): Promise<void> => {
    while (!signal.aborted) {
      const onText = (text: string) => {
        const seq = seqOf(text);
        if (seq > reader.lastSeq + 1) reader.faults++;
        reader.lastSeq = Math.max(reader.lastSeq, seq);
      };
      // Not with what it has: that would acknowledge it for all others of its job, who may not have it yet.
      const opening = openSocket({ url: product.url, path: streamPath(reader.jobNumber), token, onText });
      reader.socket = await opening.catch(() => undefined);
      reader.socket?.once("close", () => {
        reader.socket = undefined;
      });
      if (reader.socket !== undefined) return;
      await sleep(RETRY_MS);
    }
  };
  let acknowledged = 0;
  const post = async (jobNumber: string, n: number): Promise<void> => {
    const question = { token, headers: { "Idempotency-Key": String(n) }, body: [n] };
    while (!signal.aborted) {
      const answer = await target.ask(callbackPath(jobNumber), question);
      if (answer?.status === 200) break;
      await sleep(RETRY_MS);
    }
    acknowledged++;
  };
  const postToAll = (from: number, count: number) =>
    forEachConcurrently(
      jobs.flatMap((jobNumber) => Array.from({ length: count }, (_, i) => [jobNumber, from + i] as const)),
      ([jobNumber, n]) => post(jobNumber, n),
      AT_ONCE,
    );
  const openAll = async () => {
    while (!signal.aborted && readers.some(({ socket }) => socket === undefined))
      await forEachConcurrently(
        readers.filter(({ socket }) => socket === undefined),
        open,
        AT_ONCE,
      );
  };

  await openAll();
  const memory = residentMib(product.pidOf("worker"));
  await postToAll(1, MESSAGES_BEFORE);
  const pid = product.pidOf("worker");
  process.kill(pid, "SIGKILL");
  const killedMs = performance.now();
  await until(() => product.pidOf("worker") !== pid && readers.every(({ socket }) => socket === undefined), WITHIN_MS);
  await openAll();
  const recoveredMs = performance.now() - killedMs;
  await postToAll(1 + MESSAGES_BEFORE, MESSAGES_AFTER);
  const startedMs = performance.now();
  const expected = MESSAGES_BEFORE + MESSAGES_AFTER;
  await until(() => readers.every(({ lastSeq }) => lastSeq >= expected), WITHIN_MS).catch(() => {});
  const settledMs = performance.now() - startedMs;
  closeSockets(readers.flatMap(({ socket }) => socket ?? []));
  const holes = readers.filter(({ faults }) => faults > 0).length;
  return {
    acknowledged,
    lost: readers.reduce((sum, { lastSeq }) => sum + Math.max(0, expected - lastSeq), 0),
    doubled: readers.filter(({ lastSeq }) => lastSeq > expected).length,
    recoveredMs,
    settledMs,
    broken: [
      ...(holes > 0 ? [`${holes} readers with holes`] : []),
      ...(readers.some(({ lastSeq }) => lastSeq !== expected) ? ["not every reader has everything, once"] : []),
    ],
    remarks: [`${sockets} sockets on ${jobs.length} jobs`, `workerd ${memory.toFixed(0)} MiB with them`],
  };
}
