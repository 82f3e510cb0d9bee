import { DurableObject } from "cloudflare:workers";
import * as z from "zod";
import { describeError, log } from "../lib/log.ts";

/** Metrics of the whole service. */
export interface MetricTotals {
  /** By series. */
  sums: Map<string, number>;
  /** Open WebSockets of all jobs. */
  sockets: number;
}

const Sums = z.map(z.string(), z.number()).optional();
const SocketCount = z.object({ sockets: z.int() });

/** Far more than the code defines. Further series are not counted. */
const MAX_SERIES = 5_000;
const WRITE_AFTER_MS = 1_000;
/** No socket outlives the token of its reader, and tokens live for a day at most. */
const MAX_SOCKET_MS = 25 * 3_600_000;

/**
 * Collects the metrics of all isolates and Durable Objects. It stores them on disk, because the platform evicts an object that is idle
 * for a few seconds: counters in memory would restart from zero before the next scrape.
 */
export class Ledger extends DurableObject<Env> {
  readonly #sums: Map<string, number>;
  /** Socket counts by job that are not yet written. */
  readonly #unwritten = new Map<string, number>();
  #writing: Promise<void> | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    // `told_ms` is the time of the last `setSockets`. Existing objects have this column: do not rename it.
    ctx.storage.sql.exec(
      "CREATE TABLE IF NOT EXISTS job (number TEXT PRIMARY KEY, sockets INTEGER NOT NULL, told_ms INTEGER NOT NULL)",
    );
    this.#sums = Sums.parse(ctx.storage.kv.get("sums")) ?? new Map();
  }

  async add(increments: Map<string, number>): Promise<void> {
    for (const [series, by] of increments) {
      const sum = this.#sums.get(series);
      if (sum !== undefined || this.#sums.size < MAX_SERIES) this.#sums.set(series, (sum ?? 0) + by);
    }
    // Stored as one value: one row costs less than hundreds.
    this.ctx.storage.kv.put("sums", this.#sums);
  }

  /** Sets the number of sockets of a job. An absolute number: after a lost or repeated call the next one corrects the total. */
  async setSockets(jobNumber: string, sockets: number): Promise<void> {
    this.#unwritten.set(jobNumber, sockets);
    this.#writeSoon();
  }

  /** Batches the writes: thousands of sockets that close at once would otherwise cause thousands of writes. */
  #writeSoon(): void {
    this.#writing ??= scheduler
      .wait(WRITE_AFTER_MS)
      .then(() => this.#write())
      .catch((error: unknown) => log.warn("socket counts write failed", { error: describeError(error) }));
  }

  #write(): void {
    this.#writing = undefined;
    const { sql } = this.ctx.storage;
    for (const [jobNumber, sockets] of this.#unwritten) {
      if (sockets === 0) sql.exec("DELETE FROM job WHERE number = ?", jobNumber);
      else sql.exec("INSERT OR REPLACE INTO job VALUES (?, ?, ?)", jobNumber, sockets, Date.now());
    }
    this.#unwritten.clear();
  }

  async read(): Promise<MetricTotals> {
    this.#write();
    const { sql } = this.ctx.storage;
    sql.exec("DELETE FROM job WHERE told_ms < ?", Date.now() - MAX_SOCKET_MS);
    const { sockets } = SocketCount.parse(sql.exec("SELECT coalesce(sum(sockets), 0) AS sockets FROM job").one());
    return { sums: this.#sums, sockets };
  }
}

/** Returns a client of the ledger for many requests. It gets a new stub for each call: a stub is valid in one request only. */
export function ledgerOf(namespace: DurableObjectNamespace<Ledger>): Pick<Ledger, "add" | "setSockets" | "read"> {
  const ledger = () => namespace.getByName("ledger");
  return {
    add: (increments) => ledger().add(increments),
    setSockets: (jobNumber, sockets) => ledger().setSockets(jobNumber, sockets),
    read: () => ledger().read(),
  };
}
