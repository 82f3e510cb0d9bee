import { makeUser } from "../accounts.ts";
import { callbackPath, closeSockets, openSocket, streamPath } from "../job-socket.ts";
import { until } from "../product.ts";
import type { Outcome } from "./row.ts";
import type { World } from "./world.ts";

/** Each callback comes three times, in no order, several at once: every reader sees each once, without a hole. */

const CALLBACKS = 300;
const COPIES = 3;
const READERS = 3;
const AT_ONCE = 24;
const READ_WITHIN_MS = 60_000;

interface Envelope {
  seq: number;
  data: [string];
}

export async function shuffledCallbacks(world: World, signal: AbortSignal): Promise<Outcome> {
  const target = world.target();
  const { token } = await makeUser(target.dataDir, `faults-shuffled-${Date.now()}@example.com`);
  const jobNumber = crypto.randomUUID();
  const read: Envelope[][] = Array.from({ length: READERS }, () => []);
  const path = streamPath(jobNumber);
  const sockets = await Promise.all(
    read.map((envelopes) =>
      openSocket({ url: target.url, path, token, onText: (text) => envelopes.push(JSON.parse(text) as Envelope) }),
    ),
  );

  const seqs = new Map<string, Set<number>>();
  const post = async (callback: string): Promise<void> => {
    const question = { token, headers: { "Idempotency-Key": callback }, body: [callback] };
    while (!signal.aborted) {
      const answer = await target.ask(callbackPath(jobNumber), question);
      if (answer?.status !== 200) continue;
      const { seq } = answer.body as { seq: number };
      seqs.set(callback, (seqs.get(callback) ?? new Set()).add(seq));
      return;
    }
  };
  const waiting = shuffled(Array.from({ length: CALLBACKS * COPIES }, (_, i) => `callback ${i % CALLBACKS}`));
  const lane = async () => {
    for (let next = waiting.pop(); next !== undefined && !signal.aborted; next = waiting.pop()) await post(next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  const startedMs = performance.now();
  await until(() => read.every(({ length }) => length >= CALLBACKS), READ_WITHIN_MS).catch(() => {});
  const settledMs = performance.now() - startedMs;
  closeSockets(sockets);

  const distinct = read.map((envelopes) => new Set(envelopes.map(({ data }) => data[0])).size);
  const holes = read.filter((envelopes) => envelopes.some(({ seq }, i) => seq !== i + 1)).length;
  const torn = [...seqs.values()].filter(({ size }) => size > 1).length;
  return {
    acknowledged: seqs.size * COPIES,
    lost: distinct.reduce((sum, n) => sum + seqs.size - n, 0),
    doubled: read.reduce((sum, { length }, i) => sum + length - (distinct[i] ?? 0), 0),
    recoveredMs: 0,
    settledMs,
    broken: [
      ...(holes > 0 ? [`${holes} readers with holes`] : []),
      ...(torn > 0 ? [`${torn} callbacks were answered with several numbers`] : []),
      ...(distinct.some((n) => n !== CALLBACKS) ? ["not every reader has everything"] : []),
    ],
    remarks: [`${CALLBACKS} callbacks, each ${COPIES} times, to ${READERS} readers`],
  };
}

function shuffled<T>(items: T[]): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [items[i], items[j]] = [items[j] as T, items[i] as T];
  }
  return items;
}
