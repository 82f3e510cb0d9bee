import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { makeUser } from "../accounts.ts";
import { callbackPath, closeSockets, openSocket, seqOf, streamPath } from "../job-socket.ts";
import { until } from "../product.ts";
import { Target } from "../target.ts";
import { residentMib } from "../usage.ts";
import type { Outcome } from "./row.ts";
import type { World } from "./world.ts";

/** Readers that stop reading for a while: they cost a bounded amount of memory, nobody waits for them, and they miss nothing. */

const JOBS = 8;
const MESSAGE_BYTES = 64 * 1024;
/** Less than a job retains, so that whoever comes back finds everything. */
const MESSAGES = 200;
/** What may wait for one reader, and what all the rest of the run may add. */
const BOUND_MIB = 16;
const SLACK_MIB = 256;
const RETRY_MS = 100;
const WITHIN_MS = 120_000;

interface Reader {
  socket: WebSocket | undefined;
  seqs: number[];
  closedWith: number[];
}

export async function pausedReaders(world: World, signal: AbortSignal): Promise<Outcome> {
  const { product } = world;
  const target = new Target(product);
  const { token } = await makeUser(target.dataDir, `faults-paused-${Date.now()}@example.com`);
  const jobs = Array.from({ length: JOBS }, () => crypto.randomUUID());
  const openReader = async (jobNumber: string, reader: Reader): Promise<void> => {
    const path = streamPath(jobNumber);
    const onText = (text: string) => {
      const seq = seqOf(text);
      // Nobody acknowledges, so whoever comes again begins at the beginning.
      if (seq > (reader.seqs.at(-1) ?? 0)) reader.seqs.push(seq);
    };
    const socket = await openSocket({ url: product.url, path, token, onText });
    reader.socket = socket;
    socket.once("close", (code) => {
      reader.closedWith.push(code);
      reader.socket = undefined;
    });
  };
  const newReaders = () => jobs.map((): Reader => ({ socket: undefined, seqs: [], closedWith: [] }));
  const [reading, paused] = [newReaders(), newReaders()];
  for (const readers of [reading, paused])
    await Promise.all(jobs.map((jobNumber, i) => openReader(jobNumber, readers[i] as Reader)));
  for (const { socket } of paused) socket?.pause();

  const before = residentMib(product.pidOf("worker"));
  const filler = "x".repeat(MESSAGE_BYTES);
  let acknowledged = 0;
  await Promise.all(
    jobs.map(async (jobNumber) => {
      for (let n = 1; n <= MESSAGES && !signal.aborted; ) {
        const question = { token, headers: { "Idempotency-Key": String(n) }, body: [{ n, filler }] };
        if ((await target.ask(callbackPath(jobNumber), question))?.status !== 200) {
          await sleep(RETRY_MS);
          continue;
        }
        acknowledged++;
        n++;
      }
    }),
  );
  const hasAll = ({ seqs }: Reader) => seqs.length >= MESSAGES;
  const areServed = await until(() => reading.every(hasAll), WITHIN_MS).then(
    () => true,
    () => false,
  );
  const grownMib = residentMib(product.pidOf("worker")) - before;

  const startedMs = performance.now();
  for (const { socket } of paused) socket?.resume();
  await until(async () => {
    for (const [i, reader] of paused.entries())
      if (reader.socket === undefined && !hasAll(reader)) await openReader(jobs[i] ?? "", reader).catch(() => {});
    return paused.every(hasAll);
  }, WITHIN_MS).catch(() => {});
  const recoveredMs = performance.now() - startedMs;
  const all = [...reading, ...paused];
  closeSockets(all.flatMap(({ socket }) => socket ?? []));
  const boundMib = JOBS * BOUND_MIB + SLACK_MIB;
  return {
    acknowledged,
    lost: all.reduce((sum, { seqs }) => sum + Math.max(0, MESSAGES - seqs.length), 0),
    doubled: all.reduce((sum, { seqs }) => sum + Math.max(0, seqs.length - MESSAGES), 0),
    recoveredMs,
    settledMs: 0,
    broken: [
      ...(areServed ? [] : ["those that read waited for those that did not"]),
      ...(grownMib > boundMib ? [`workerd grew by ${grownMib.toFixed(0)} MiB, more than ${boundMib}`] : []),
      ...(all.every(({ seqs }) => seqs.every((seq, i) => seq === i + 1)) ? [] : ["readers with holes"]),
    ],
    remarks: [
      `${JOBS} paused readers, ${((MESSAGES * MESSAGE_BYTES) / 2 ** 20).toFixed(1)} MiB for each`,
      `workerd grew by ${grownMib.toFixed(0)} MiB`,
      `closed with ${paused.flatMap(({ closedWith }) => closedWith).join(", ") || "nothing"}`,
    ],
  };
}
