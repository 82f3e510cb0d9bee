import { setTimeout as sleep } from "node:timers/promises";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents } from "../accounts.ts";
import { type ClickHouse, seedSamples } from "../clickhouse.ts";
import type { ApiClient } from "../client.ts";
import { historyPath, openReader, type Queued } from "../job-socket.ts";
import { cpuOf, residentMib } from "../usage.ts";
import { benchNetworkCharts } from "./network-charts.ts";
import type { BenchContext } from "./suite.ts";

/** A long history through one socket: at the reader's pace, in bounded memory, and equal to the store. */

const FIELDS = 10;
const SECOND_MS = 1_000;
/** The reader is slow for the first messages. */
const SLOW_MESSAGES = 20;
const SLOW_MS = 300;
const MIB = 1024 * 1024;
/** Sent and not acknowledged: what the service allows, and one message more. */
const MAX_IN_FLIGHT_BYTES = 1.5 * MIB;
/** The service and the reader count rows at different times. They differ by up to a message each. */
const MAX_SKEW_ROWS = 10_000;
const MAX_GROWTH_MIB = 300;

/** What is stored: ten fields once per second. */
interface Stored {
  apId: string;
  samples: number;
  fromMs: number;
}

export async function benchHistory(context: BenchContext): Promise<void> {
  const { product, client, clickhouse, user, report } = context;
  const samples = Math.ceil((context.rows ?? (context.isQuick ? 50_000 : 1_000_000)) / FIELDS);
  print(`Filling the store with ${samples * FIELDS} points.`);
  const stored = await seedAgent(context, samples);
  const direct = await rowsPerSecondOfStore(clickhouse, stored);
  report.add("the same rows, read from ClickHouse itself", direct, "rows/s");

  const pid = product.pidOf("worker");
  const before = residentMib(pid);
  const cpuPer = cpuOf(product, ["worker", "clickhouse"]);
  const memory = [before];
  const watchMemory = () => memory.push(residentMib(pid));
  const { rows, bytes, messages, rowsPerSecond, ...read } = await readHistory(client, user.token, stored, watchMemory);
  const most = Math.max(...memory);
  const details = { "MiB/s": (rowsPerSecond * bytes) / rows / MIB, messages, ...cpuPer(rows) };
  const ratio = { of: "ClickHouse itself", value: rowsPerSecond / direct };
  report.add(`history of ${rows} points through a socket`, rowsPerSecond, "rows/s", details, ratio);
  const course = { before, halfway: memory[memory.length >> 1] ?? 0, "at the end": memory.at(-1) ?? 0 };
  report.add("memory of workerd meanwhile, maximum", most, "MiB", course);
  const growth = { "grew by MiB": most - before, "MiB in all": bytes / MIB };
  report.require(`workerd grew by at most ${MAX_GROWTH_MIB} MiB`, most - before <= MAX_GROWTH_MIB, growth);
  const allowed = (MAX_IN_FLIGHT_BYTES * rows) / bytes + MAX_SKEW_ROWS;
  const { mostInFlight: maximum, wrong, holes, announced } = read;
  const fewInFlight = `few rows were in flight to a reader that took ${SLOW_MS} ms for each message`;
  report.require(fewInFlight, maximum <= allowed, { maximum, allowed });
  const isComplete = rows === samples * FIELDS && rows === announced;
  const equal = "the stored rows arrived field by field, ascending in time, in messages without a hole";
  report.require(equal, isComplete && wrong === 0 && holes === 0, { rows, announced, wrong, holes });
  await benchNetworkCharts(context);
}

/** Returns the value of a field `age` seconds before the last sample. Multiples of 1/8 are exact in JSON, too. */
const storedValue = (field: number, age: number): number =>
  (((age * 7919 + field * 104_729) % 1_000_003) - 500_000) / 8;

/** Creates an agent and stores its samples. */
async function seedAgent({ product, clickhouse }: BenchContext, samples: number): Promise<Stored> {
  const prefix = "bench-history";
  const [agent] = await makeAgents(product.dataDir, prefix, 1);
  const toMs = Math.floor(Date.now() / SECOND_MS) * SECOND_MS - 60 * SECOND_MS;
  const sqlOf = (field: number) => `((number * 7919 + ${field * 104_729}) % 1000003 - 500000) / 8`;
  const metrics = Object.fromEntries(Array.from({ length: FIELDS }, (_, i) => [`field_${i}`, sqlOf(i)]));
  await seedSamples(clickhouse, { agents: { prefix }, samples, toMs, metrics });
  return { apId: agent?.apId ?? "", samples, fromMs: toMs - (samples - 1) * SECOND_MS };
}

/** Reads all rows at once, in the order and the format in which the service reads them. */
async function rowsPerSecondOfStore(clickhouse: ClickHouse, { apId }: Stored): Promise<number> {
  const startedMs = performance.now();
  const result = await clickhouse.query({
    query: `SELECT ts AS time, metric AS field, value FROM points_v1 FINAL WHERE ap_id = {apId:String} ORDER BY metric, ts`,
    query_params: { apId },
    format: "JSONEachRow",
    clickhouse_settings: { date_time_output_format: "iso" },
  });
  let rows = 0;
  for await (const batch of result.stream()) rows += (batch as unknown[]).length;
  return (1000 * rows) / (performance.now() - startedMs);
}

interface Row {
  time: string;
  field: string;
  value: number;
}

/** Reads a history as a client does, slowly at first, and compares each row with what is stored at its place. */
async function readHistory(client: ApiClient, token: string, stored: Stored, onMessage: () => void) {
  const { apId, samples, fromMs } = stored;
  const counts = { rows: 0, bytes: 0, messages: 0, mostInFlight: 0, wrong: 0, holes: 0, announced: 0 };
  const isRight = ({ time, field, value }: Row, i: number): boolean => {
    const [fieldIndex, second] = [Math.floor(i / samples), i % samples];
    const isInPlace = field === `field_${fieldIndex}` && Date.parse(time) === fromMs + second * SECOND_MS;
    return isInPlace && value === storedValue(fieldIndex, samples - 1 - second);
  };

  /** When the reader was slow for the last time, and the rows that it had then. */
  let since = { ms: performance.now(), rows: 0 };
  const range = { apId, fromMs, toMs: fromMs + samples * SECOND_MS };
  const { job_number: job } = await client.call<Queued>(historyPath(range), { method: "POST", token });
  const reader = await openReader(client, token, job);
  for (let isOver = false; !isOver; ) {
    const { seq, type, final, data, bytes } = await reader.next<unknown>();
    onMessage();
    if (seq !== ++counts.messages) counts.holes++;
    if (type === "agent_data") {
      const isSlow = counts.messages <= SLOW_MESSAGES;
      if (isSlow) {
        await sleep(SLOW_MS);
        const { rows_sent } = await client.call<{ rows_sent: number }>(`/api/v1/jobs/${job}`, { token });
        counts.mostInFlight = Math.max(counts.mostInFlight, rows_sent - counts.rows);
      }
      for (const row of data as Row[]) if (!isRight(row, counts.rows++)) counts.wrong++;
      counts.bytes += bytes;
      if (isSlow) since = { ms: performance.now(), rows: counts.rows };
    }
    reader.acknowledge(seq);
    isOver = final;
    if (final) counts.announced = (data as { rows_sent: number }).rows_sent;
  }
  const rowsPerSecond = (1000 * (counts.rows - since.rows)) / (performance.now() - since.ms);
  reader.close();
  return { ...counts, rowsPerSecond };
}
