import { setTimeout as sleep } from "node:timers/promises";
import { type ClickHouse, selectRows, withClickHouse } from "../clickhouse.ts";
import type { Target } from "../client.ts";
import type { Verdict } from "../workload.ts";

/** Compares a sender's record with the store: each point is stored once with its value, and the rollups count the same points. */

const POLL_MS = 1_000;
/** A point is lost if nothing arrives for this time. */
const SETTLED_AFTER_MS = 60_000;
const MAX_SETTLING_MS = 600_000;
/** ClickHouse updates the rollups shortly after the points. */
const ROLLED_UP_WITHIN_MS = 10_000;

interface StoredPoint {
  ap_id: string;
  metric: string;
  at: string;
  values: number[];
}

const keyOf = (apId: string, metric: string, at: number | string): string => `${apId} ${at} ${metric}`;
const keyOfPoint = ({ ap_id, metric, at }: Omit<StoredPoint, "values">): string => keyOf(ap_id, metric, at);
const seriesOf = (apId: string, metric: string): string => `${apId} ${metric}`;

export class PointOracle {
  readonly #store: Pick<Target, "urls">;
  readonly #prefix: string;
  readonly #recorded = new Map<string, number>();
  readonly #allowed = new Map<string, number>();

  /** Looks at all metrics of the agents whose names begin with the prefix. */
  constructor(store: Pick<Target, "urls">, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
  }

  record(apId: string, metric: string, tsMs: number, value: number): void {
    this.#recorded.set(keyOf(apId, metric, tsMs), value);
  }

  /** Notes a point that the sender discarded after an attempt: it may be stored, with this value. */
  allow(apId: string, metric: string, tsMs: number, value: number): void {
    this.#allowed.set(keyOf(apId, metric, tsMs), value);
  }

  get recorded(): number {
    return this.#recorded.size;
  }

  /** Waits for points that are late, then compares. */
  async compare(): Promise<Verdict> {
    return await withClickHouse(this.#store, async (clickhouse) => {
      const startedMs = performance.now();
      let points = await this.#read(clickhouse);
      const countLost = () =>
        this.#recorded.size - points.filter((point) => this.#recorded.has(keyOfPoint(point))).length;
      for (let arrivedMs = startedMs, nowMs = startedMs; countLost() > 0; nowMs = performance.now()) {
        if (nowMs - arrivedMs > SETTLED_AFTER_MS || nowMs - startedMs > MAX_SETTLING_MS) break;
        await sleep(POLL_MS);
        const before = points.length;
        points = await this.#read(clickhouse);
        if (points.length > before) arrivedMs = performance.now();
      }
      const settledMs = performance.now() - startedMs;
      const copies = points.reduce((sum, { values }) => sum + values.length - 1, 0);
      return {
        lost: countLost(),
        duplicates: copies + (await this.#rollupErrors(clickhouse, points)),
        violations: {
          unexpected: points.filter((point) => this.#valueOf(point) === undefined).length,
          "wrong values": points.filter(({ values, ...point }) => {
            const expected = this.#valueOf(point);
            return expected !== undefined && values.some((value) => value !== expected);
          }).length,
        },
        settledMs,
      };
    });
  }

  #valueOf(point: Omit<StoredPoint, "values">): number | undefined {
    const key = keyOfPoint(point);
    return this.#recorded.get(key) ?? this.#allowed.get(key);
  }

  async #read(clickhouse: ClickHouse): Promise<StoredPoint[]> {
    const query = `SELECT ap_id, metric, toUnixTimestamp64Milli(ts) AS at, groupArray(value) AS values FROM points_v1
      WHERE startsWith(ap_id, {prefix:String}) GROUP BY ap_id, metric, at`;
    return await selectRows<StoredPoint>(clickhouse, query, { prefix: this.#prefix });
  }

  /** Returns by how many points the rollups differ. */
  async #rollupErrors(clickhouse: ClickHouse, points: readonly StoredPoint[]): Promise<number> {
    const query = `SELECT ap_id, metric, sum(n) AS n FROM minutes_v1
      WHERE startsWith(ap_id, {prefix:String}) GROUP BY ap_id, metric`;
    const stored = Map.groupBy(points, ({ ap_id, metric }) => seriesOf(ap_id, metric));
    const difference = async (): Promise<number> => {
      const params = { prefix: this.#prefix };
      const rows = await selectRows<{ ap_id: string; metric: string; n: string }>(clickhouse, query, params);
      const rolledUp = new Map(rows.map(({ ap_id, metric, n }) => [seriesOf(ap_id, metric), Number(n)]));
      const all = [...new Set([...stored.keys(), ...rolledUp.keys()])];
      return all.reduce((sum, key) => sum + Math.abs((stored.get(key)?.length ?? 0) - (rolledUp.get(key) ?? 0)), 0);
    };
    let errors = await difference();
    for (const endMs = performance.now() + ROLLED_UP_WITHIN_MS; errors > 0 && performance.now() < endMs; ) {
      await sleep(POLL_MS);
      errors = await difference();
    }
    return errors;
  }
}
