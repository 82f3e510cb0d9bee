import { setTimeout as sleep } from "node:timers/promises";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents, makeUser } from "../accounts.ts";
import { clickhouseOf } from "../clickhouse.ts";
import { acknowledge, closeSockets, openSocket, requestHistory, seqOf, streamPath } from "../job-socket.ts";
import type { Product } from "../product.ts";
import { cpuOf, residentMib, watchMemory } from "../usage.ts";
import type { BenchContext } from "./context.ts";

/** A long history through one socket: at the reader's pace, in bounded memory, and the same as the store holds. */

const FIELDS = 10;
const SECOND_MS = 1_000;
/** Samples in one INSERT … SELECT: enough to be quick, few enough for a small machine. */
const SEED_SAMPLES = 100_000;
/** The reader is slow for the first so many messages. */
const SLOW_MESSAGES = 20;
const SLOW_MS = 300;
/** Sent and not acknowledged: what the service allows itself, and one message more. */
const MAX_IN_FLIGHT_BYTES = 1.5 * 1024 * 1024;
/** The count of rows is asked for at another time than the reader's is taken: by up to a message of each. */
const MAX_ASTRAY_ROWS = 10_000;
const MAX_GROWTH_MIB = 300;
const MIB = 1024 * 1024;

export interface HistoryRange {
  apId: string;
  fromMs: number;
  toMs: number;
}

export async function benchHistory(context: BenchContext): Promise<void> {
  const { product, report } = context;
  const rows = context.rows ?? (context.isQuick ? 50_000 : 1_000_000);
  const { token } = await makeUser(product.dataDir, "bench-history@example.com");
  const [agent] = await makeAgents(product.dataDir, "bench-history", 1);
  print(`Filling the store with ${rows} points.`);
  const range = await seedHistory(product, agent?.apId ?? "", rows);

  const direct = await rowsPerSecondOfStore(product, range);
  report.add({ what: "the same rows, read from ClickHouse itself", value: direct, unit: "rows/s" });

  const before = residentMib(product.pidOf("worker"));
  const cpu = cpuOf(product, ["worker", "clickhouse"]);
  const memory = watchMemory(product.pidOf("worker"));
  const read = await readHistory(product, token, range, SLOW_MESSAGES);
  const samples = memory.end();
  const most = Math.max(...samples);
  report.add({
    id: "history",
    what: `history of ${read.rows} points through a socket`,
    value: read.rowsPerSecond,
    unit: "rows/s",
    ratio: { of: "ClickHouse itself", value: read.rowsPerSecond / direct },
    details: {
      "MiB/s": (read.rowsPerSecond * read.bytes) / read.rows / MIB,
      messages: read.messages,
      ...cpu.per(read.rows),
    },
  });
  report.add({
    what: "memory of workerd meanwhile, at the most",
    value: most,
    unit: "MiB",
    details: { before, halfway: samples[samples.length >> 1] ?? 0, "at the end": samples.at(-1) ?? 0 },
  });
  report.require({
    what: `workerd grew by at most ${MAX_GROWTH_MIB} MiB`,
    isKept: most - before <= MAX_GROWTH_MIB,
    details: { "grew by MiB": most - before, "MiB in all": read.bytes / MIB },
  });
  const maxInFlight = (MAX_IN_FLIGHT_BYTES * read.rows) / read.bytes + MAX_ASTRAY_ROWS;
  report.require({
    what: `a reader that took ${SLOW_MS} ms over each message had few rows on the way to it`,
    isKept: read.mostInFlight <= maxInFlight,
    details: { "at the most": read.mostInFlight, "allowed at the most": maxInFlight },
  });
  report.require({
    what: "rows came field by field, ascending in time, in messages without a hole",
    isKept: read.inversions === 0 && read.holes === 0,
    details: { inversions: read.inversions, holes: read.holes },
  });
  const stored = await sumsOfStore(product, range);
  report.require({
    what: "count, sum and checksum of each field are those of the store",
    isKept: JSON.stringify(stored) === JSON.stringify(read.sums) && read.rows === read.announced,
    details: { fields: stored.length, rows: read.rows, stored: stored.reduce((sum, { count }) => sum + count, 0) },
  });
}

/** An agent with ten fields, once a second up to a while ago; returns the time that they span. */
export async function seedHistory(product: Product, apId: string, rows: number): Promise<HistoryRange> {
  const clickhouse = clickhouseOf(product);
  const samples = Math.ceil(rows / FIELDS);
  const toMs = Math.floor(Date.now() / SECOND_MS) * SECOND_MS - 60 * SECOND_MS;
  const fields = Array.from({ length: FIELDS }, (_, i) => {
    // Eighths: a binary number has them exactly, so sums are the same in any order.
    return `'field_${i}', ((number * 7919 + ${i * 104_729}) % 1000003 - 500000) / 8`;
  });
  for (let at = 0; at < samples; at += SEED_SAMPLES) {
    await clickhouse.command({
      query: `INSERT INTO samples_v1 (ap_id, ts, metrics, texts)
        SELECT {ap_id:String}, fromUnixTimestamp64Milli({to:Int64} - number * ${SECOND_MS}), map(${fields.join(", ")}), map()
        FROM numbers(${at}, ${Math.min(SEED_SAMPLES, samples - at)})`,
      query_params: { ap_id: apId, to: toMs },
      clickhouse_settings: { max_partitions_per_insert_block: "0" },
    });
  }
  await clickhouse.close();
  return { apId, fromMs: toMs - samples * SECOND_MS, toMs };
}

/** In the order and the format in which the service reads them, all at once. */
async function rowsPerSecondOfStore(product: Product, { apId, fromMs, toMs }: HistoryRange): Promise<number> {
  const clickhouse = clickhouseOf(product);
  const startedMs = performance.now();
  const answer = await clickhouse.query({
    query: `SELECT ts AS time, metric AS field, value FROM points_v1 FINAL
            WHERE ap_id = {ap_id:String} AND ts BETWEEN fromUnixTimestamp64Milli({from:Int64}) AND fromUnixTimestamp64Milli({to:Int64})
            ORDER BY metric, ts`,
    query_params: { ap_id: apId, from: fromMs, to: toMs },
    format: "JSONEachRow",
    clickhouse_settings: { date_time_output_format: "iso" },
  });
  let rows = 0;
  for await (const batch of answer.stream()) rows += (batch as unknown[]).length;
  await clickhouse.close();
  return (1000 * rows) / (performance.now() - startedMs);
}

/** Of one field. */
interface Sums {
  field: string;
  count: number;
  sum: number;
  checksum: number;
}

/** The product of a time and a value in eighths, both made small: its sum over all rows stays an exact number. */
const CHECKED = { timeModulus: 1_000_003, modulus: 99_999_989 };

async function sumsOfStore(product: Product, { apId, fromMs, toMs }: HistoryRange): Promise<Sums[]> {
  const clickhouse = clickhouseOf(product);
  const answer = await clickhouse.query({
    query: `SELECT metric AS field, toFloat64(count()) AS count, sum(value) AS sum,
              toFloat64(sum((toUnixTimestamp64Milli(ts) % ${CHECKED.timeModulus} * toInt64(value * 8)) % ${CHECKED.modulus})) AS checksum
            FROM points_v1 FINAL
            WHERE ap_id = {ap_id:String} AND ts BETWEEN fromUnixTimestamp64Milli({from:Int64}) AND fromUnixTimestamp64Milli({to:Int64})
            GROUP BY metric ORDER BY metric`,
    query_params: { ap_id: apId, from: fromMs, to: toMs },
    format: "JSONEachRow",
  });
  const sums = await answer.json<Sums>();
  await clickhouse.close();
  return sums;
}

interface Envelope {
  type: string;
  final: boolean;
  data: unknown;
}

interface Row {
  time: string;
  field: string;
  value: number;
}

/** Reads a history as a client does, keeping sums only. The first messages it takes its time over. */
export async function readHistory(product: Product, token: string, range: HistoryRange, slowMessages = 0) {
  const { url } = product;
  const read = {
    rows: 0,
    bytes: 0,
    messages: 0,
    mostInFlight: 0,
    inversions: 0,
    holes: 0,
    announced: 0,
    rowsPerSecond: 0,
  };
  const sums: Sums[] = [];
  let lastMs = 0;
  const take = ({ time, field, value }: Row): void => {
    const tsMs = Date.parse(time);
    let of = sums.at(-1);
    if (of?.field !== field) {
      if (of !== undefined && of.field > field) read.inversions++;
      of = { field, count: 0, sum: 0, checksum: 0 };
      sums.push(of);
    } else if (tsMs <= lastMs) read.inversions++;
    lastMs = tsMs;
    of.count++;
    of.sum += value;
    of.checksum += ((tsMs % CHECKED.timeModulus) * (value * 8)) % CHECKED.modulus;
  };

  /** When the reader was slow for the last time, and what it had by then. */
  let since = { ms: performance.now(), rows: 0 };
  const jobNumber = await requestHistory(url, token, range);
  const waiting: string[] = [];
  let wake: () => void = () => {};
  const socket = await openSocket({
    url,
    path: streamPath(jobNumber),
    token,
    onText: (text) => {
      waiting.push(text);
      wake();
    },
  });
  socket.once("close", () => wake());
  for (let isOver = false; !isOver; ) {
    const text = waiting.shift();
    if (text === undefined) {
      if (socket.readyState !== socket.OPEN) throw new Error("The socket was closed before the last message.");
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    const seq = seqOf(text);
    if (seq !== ++read.messages) read.holes++;
    const { type, final, data } = JSON.parse(text) as Envelope;
    if (type === "agent_data") {
      if (read.messages <= slowMessages) {
        await sleep(SLOW_MS);
        const inFlight = (await rowsSent(product, token, jobNumber)) - read.rows;
        read.mostInFlight = Math.max(read.mostInFlight, inFlight);
      }
      const rows = data as Row[];
      for (const row of rows) take(row);
      read.rows += rows.length;
      read.bytes += text.length;
      if (read.messages <= slowMessages) since = { ms: performance.now(), rows: read.rows };
    }
    acknowledge(socket, seq);
    isOver = final;
    if (final) read.announced = (data as { rows_sent: number }).rows_sent;
  }
  read.rowsPerSecond = (1000 * (read.rows - since.rows)) / (performance.now() - since.ms);
  closeSockets([socket]);
  return { ...read, sums };
}

async function rowsSent({ url }: Product, token: string, jobNumber: string): Promise<number> {
  const response = await fetch(`${url}/api/v1/jobs/${jobNumber}`, { headers: { Authorization: `Bearer ${token}` } });
  return ((await response.json()) as { rows_sent: number }).rows_sent;
}
