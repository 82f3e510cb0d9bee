import { DurableObject } from "cloudflare:workers";
import * as z from "zod";
import { describeError, log } from "../lib/log.ts";

/** Figures of the whole service. */
export interface MetricTotals {
  /** By series. */
  sums: Map<string, number>;
  /** Open sockets of all jobs. */
  sockets: number;
}

const Sums = z.map(z.string(), z.number()).optional();
const Counted = z.object({ sockets: z.int() });

/** Series are words of the code; should they ever be more, the further ones are not counted. */
const MAX_SERIES = 5_000;
const WRITE_AFTER_MS = 1_000;
/** No socket outlives its reader's token, and no token a day. */
const MAX_SOCKET_MS = 25 * 3_600_000;

/**
 * The one place where the figures of all isolates and objects come together. They are on disk, since an object that is not called for a
 * few seconds ends: counters that began anew each time would have nothing to tell at the next scrape.
 */
export class Ledger extends DurableObject<Env> {
  readonly #sums: Map<string, number>;
  /** What jobs have told since it was last written. */
  readonly #told = new Map<string, number>();
  #writing: Promise<void> | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
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
    // As one value: one row costs less than hundreds.
    this.ctx.storage.kv.put("sums", this.#sums);
  }

  /** A job tells how many sockets it has. Not by how many more or fewer: told twice, or not at all, the next time sets it right. */
  async setSockets(jobNumber: string, sockets: number): Promise<void> {
    this.#told.set(jobNumber, sockets);
    this.#writeSoon();
  }

  /** Together, however many tell something: a crowd of sockets that goes at once would be thousands of writes. */
  #writeSoon(): void {
    this.#writing ??= scheduler
      .wait(WRITE_AFTER_MS)
      .then(() => this.#write())
      .catch((error: unknown) => log.warn("figures not written", { error: describeError(error) }));
  }

  #write(): void {
    this.#writing = undefined;
    const { sql } = this.ctx.storage;
    for (const [jobNumber, sockets] of this.#told) {
      if (sockets === 0) sql.exec("DELETE FROM job WHERE number = ?", jobNumber);
      else sql.exec("INSERT OR REPLACE INTO job VALUES (?, ?, ?)", jobNumber, sockets, Date.now());
    }
    this.#told.clear();
  }

  async read(): Promise<MetricTotals> {
    this.#write();
    const { sql } = this.ctx.storage;
    sql.exec("DELETE FROM job WHERE told_ms < ?", Date.now() - MAX_SOCKET_MS);
    const { sockets } = Counted.parse(sql.exec("SELECT coalesce(sum(sockets), 0) AS sockets FROM job").one());
    return { sums: this.#sums, sockets };
  }
}

/** The way to it, for as many requests as come: a stub is good only in the one that it was made in. */
export function ledgerOf(namespace: DurableObjectNamespace<Ledger>): Pick<Ledger, "add" | "setSockets" | "read"> {
  const ledger = () => namespace.getByName("ledger");
  return {
    add: (increments) => ledger().add(increments),
    setSockets: (jobNumber, sockets) => ledger().setSockets(jobNumber, sockets),
    read: () => ledger().read(),
  };
}
