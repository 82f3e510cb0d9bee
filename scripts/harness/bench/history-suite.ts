import { setTimeout as sleep } from "node:timers/promises";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents, makeUser } from "../accounts.ts";
import { type ClickHouse, selectRows, withClickHouse } from "../clickhouse.ts";
import type { ApiClient } from "../client.ts";
import { historyPath, openReader, type Queued } from "../job-socket.ts";
import { cpuOf, residentMib, watchMemory } from "../usage.ts";
import { benchNetworkCharts } from "./network-charts.ts";
import type { BenchContext } from "./suite.ts";

/** A long history through one socket: at the reader's pace, in bounded memory, and equal to the store. */

const FIELDS = 10;
const SECOND_MS = 1_000;
/** Samples in one INSERT … SELECT: few enough for a small machine. */
const SEED_SAMPLES = 100_000;
/** The reader is slow for the first messages. */
const SLOW_MESSAGES = 20;
const SLOW_MS = 300;
/** Sent and not acknowledged: what the service allows, and one message more. */
const MAX_IN_FLIGHT_BYTES = 1.5 * 1024 * 1024;
/** The service and the reader count rows at different times. They differ by up to a message each. */
const MAX_SKEW_ROWS = 10_000;
const MAX_GROWTH_MIB = 300;
const MIB = 1024 * 1024;

interface HistoryRange {
  apId: string;
  fromMs: number;
  toMs: number;
}

export async function benchHistory(context: BenchContext): Promise<void> {
  const { product, client, report } = context;
  const rows = context.rows ?? (context.isQuick ? 50_000 : 1_000_000);
  const { token } = await makeUser(product.dataDir, "bench-history@example.com");
  const [agent] = await makeAgents(product.dataDir, "bench-history", 1);
  print(`Filling the store with ${rows} points.`);
  const range = await withClickHouse(product, (clickhouse) => seed(clickhouse, agent?.apId ?? "", rows));
  const direct = await withClickHouse(product, (clickhouse) => rowsPerSecondOfStore(clickhouse, range));
  report.add("the same rows, read from ClickHouse itself", direct, "rows/s");

  const pid = product.pidOf("worker");
  const before = residentMib(pid);
  const cpu = cpuOf(product, ["worker", "clickhouse"]);
  const memory = watchMemory(pid);
  const read = await readHistory(client, token, range);
  const samples = memory.end();
  const most = Math.max(...samples);
  const mibPerS = (read.rowsPerSecond * read.bytes) / read.rows / MIB;
  report.add(`history of ${read.rows} points through a socket`, read.rowsPerSecond, "rows/s", {
    ratio: { of: "ClickHouse itself", value: read.rowsPerSecond / direct },
    details: { "MiB/s": mibPerS, messages: read.messages, ...cpu.per(read.rows) },
  });
  report.add("memory of workerd meanwhile, maximum", most, "MiB", {
    details: { before, halfway: samples[samples.length >> 1] ?? 0, "at the end": samples.at(-1) ?? 0 },
  });
  report.require({
    what: `workerd grew by at most ${MAX_GROWTH_MIB} MiB`,
    isKept: most - before <= MAX_GROWTH_MIB,
    details: { "grew by MiB": most - before, "MiB in all": read.bytes / MIB },
  });
  const maxInFlight = (MAX_IN_FLIGHT_BYTES * read.rows) / read.bytes + MAX_SKEW_ROWS;
  report.require({
    what: `few rows were in flight to a reader that took ${SLOW_MS} ms for each message`,
    isKept: read.mostInFlight <= maxInFlight,
    details: { maximum: read.mostInFlight, allowed: maxInFlight },
  });
  report.require({
    what: "rows arrived field by field, ascending in time, in messages without a hole",
    isKept: read.inversions === 0 && read.holes === 0,
    details: { inversions: read.inversions, holes: read.holes },
  });
  const stored = await withClickHouse(product, (clickhouse) => sumsOfStore(clickhouse, range));
  report.require({
    what: "count, sum and checksum of each field equal those of the store",
    isKept: JSON.stringify(stored) === JSON.stringify(read.sums) && read.rows === read.announced,
    details: { fields: stored.length, rows: read.rows, stored: stored.reduce((sum, { count }) => sum + count, 0) },
  });
  await benchNetworkCharts(context);
}

/** Inserts an agent's ten fields, once per second. Returns their time range. */
async function seed(clickhouse: ClickHouse, apId: string, rows: number): Promise<HistoryRange> {
  const samples = Math.ceil(rows / FIELDS);
  const toMs = Math.floor(Date.now() / SECOND_MS) * SECOND_MS - 60 * SECOND_MS;
  // Multiples of 1/8 are exact binary numbers, so their sum does not depend on the order.
  const sqlValue = (i: number) => `((number * 7919 + ${i * 104_729}) % 1000003 - 500000) / 8`;
  const fields = Array.from({ length: FIELDS }, (_, i) => `'field_${i}', ${sqlValue(i)}`);
  for (let at = 0; at < samples; at += SEED_SAMPLES) {
    await clickhouse.command({
      query: `INSERT INTO samples_v1 (ap_id, ts, metrics, texts)
        SELECT {ap_id:String}, fromUnixTimestamp64Milli({to:Int64} - number * ${SECOND_MS}), map(${fields.join(", ")}), map()
        FROM numbers(${at}, ${Math.min(SEED_SAMPLES, samples - at)})`,
      query_params: { ap_id: apId, to: toMs },
      clickhouse_settings: { max_partitions_per_insert_block: "0" },
    });
  }
  return { apId, fromMs: toMs - samples * SECOND_MS, toMs };
}

const FROM_RANGE = `FROM points_v1 FINAL
  WHERE ap_id = {ap_id:String} AND ts BETWEEN fromUnixTimestamp64Milli({from:Int64}) AND fromUnixTimestamp64Milli({to:Int64})`;
const paramsOf = ({ apId, fromMs, toMs }: HistoryRange) => ({ ap_id: apId, from: fromMs, to: toMs });

/** Reads all rows at once, in the order and the format in which the service reads them. */
async function rowsPerSecondOfStore(clickhouse: ClickHouse, range: HistoryRange): Promise<number> {
  const startedMs = performance.now();
  const result = await clickhouse.query({
    query: `SELECT ts AS time, metric AS field, value ${FROM_RANGE} ORDER BY metric, ts`,
    query_params: paramsOf(range),
    format: "JSONEachRow",
    clickhouse_settings: { date_time_output_format: "iso" },
  });
  let rows = 0;
  for await (const batch of result.stream()) rows += (batch as unknown[]).length;
  return (1000 * rows) / (performance.now() - startedMs);
}

/** Of one field. */
interface Sums {
  field: string;
  count: number;
  sum: number;
  checksum: number;
}

/** The checksum multiplies a time and a value in eighths, both reduced so that the sum over all rows stays exact. */
const TIME_MODULUS = 1_000_003;
const MODULUS = 99_999_989;

async function sumsOfStore(clickhouse: ClickHouse, range: HistoryRange): Promise<Sums[]> {
  const checksum = `(toUnixTimestamp64Milli(ts) % ${TIME_MODULUS} * toInt64(value * 8)) % ${MODULUS}`;
  const columns = `metric AS field, toFloat64(count()) AS count, sum(value) AS sum, toFloat64(sum(${checksum})) AS checksum`;
  const query = `SELECT ${columns} ${FROM_RANGE} GROUP BY metric ORDER BY metric`;
  return await selectRows<Sums>(clickhouse, query, paramsOf(range));
}

interface Row {
  time: string;
  field: string;
  value: number;
}

/** Reads a history as a client does, slowly at first, and keeps sums only. */
async function readHistory(client: ApiClient, token: string, range: HistoryRange) {
  const counts = { rows: 0, bytes: 0, messages: 0, mostInFlight: 0, inversions: 0, holes: 0, announced: 0 };
  const sums: Sums[] = [];
  let lastMs = 0;
  const add = ({ time, field, value }: Row): void => {
    const tsMs = Date.parse(time);
    let current = sums.at(-1);
    if (current?.field !== field) {
      if (current !== undefined && current.field > field) counts.inversions++;
      current = { field, count: 0, sum: 0, checksum: 0 };
      sums.push(current);
    } else if (tsMs <= lastMs) counts.inversions++;
    lastMs = tsMs;
    current.count++;
    current.sum += value;
    current.checksum += ((tsMs % TIME_MODULUS) * (value * 8)) % MODULUS;
  };

  /** When the reader was slow for the last time, and the rows that it had then. */
  let since = { ms: performance.now(), rows: 0 };
  const { job_number: job } = await client.call<Queued>(historyPath(range), { method: "POST", token });
  const reader = await openReader(client, token, job);
  for (let isOver = false; !isOver; ) {
    const { seq, type, final, data, bytes } = await reader.next<unknown>();
    if (seq !== ++counts.messages) counts.holes++;
    if (type === "agent_data") {
      const isSlow = counts.messages <= SLOW_MESSAGES;
      if (isSlow) {
        await sleep(SLOW_MS);
        const { rows_sent } = await client.call<{ rows_sent: number }>(`/api/v1/jobs/${job}`, { token });
        counts.mostInFlight = Math.max(counts.mostInFlight, rows_sent - counts.rows);
      }
      const rows = data as Row[];
      for (const row of rows) add(row);
      counts.rows += rows.length;
      counts.bytes += bytes;
      if (isSlow) since = { ms: performance.now(), rows: counts.rows };
    }
    reader.acknowledge(seq);
    isOver = final;
    if (final) counts.announced = (data as { rows_sent: number }).rows_sent;
  }
  const rowsPerSecond = (1000 * (counts.rows - since.rows)) / (performance.now() - since.ms);
  reader.close();
  return { ...counts, rowsPerSecond, sums };
}
