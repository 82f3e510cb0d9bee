import { setTimeout as sleep } from "node:timers/promises";
import type { StoresConfig } from "../../../src/env.ts";
import { cityHash64 } from "../../../src/lib/city-hash.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { createClickHouse } from "../../../src/storage/clickhouse.ts";
import {
  type AgentSample,
  createTelemetryStore,
  type TelemetryStore,
} from "../../../src/telemetry/store/telemetry-store.ts";

/** What a shard must have. */
export interface Written {
  samples: number;
  total: number;
}

const AGENTS_PER_SHARD = 5;
const PAUSE_MS = 200;
const RETRY_MS = 500;
/** Every so many batches, the same batch is sent again through another address. */
const REPEAT_EVERY = 3;

/** Writes to each shard as the journal of the service does: the same batch with the same token until it is acknowledged. */
export class CheckWriter {
  readonly written: Written[];
  /** Batches that could not be read right after they were acknowledged. */
  misses = 0;
  readonly #agents: string[][];
  readonly #store: TelemetryStore;
  readonly #otherStore: TelemetryStore;
  readonly #stop = new AbortController();
  #isPaused = false;
  #busy = 0;
  #batches = 0;
  #failures = 0;

  constructor(config: StoresConfig, shards: number) {
    this.written = Array.from({ length: shards }, () => ({ samples: 0, total: 0 }));
    this.#agents = Array.from({ length: shards }, (_, shard) => agentsOn(shard, shards));
    const reversed = { ...config, CLICKHOUSE_URL: config.CLICKHOUSE_URL.toReversed() };
    this.#store = createTelemetryStore(createClickHouse(config));
    this.#otherStore = createTelemetryStore(createClickHouse(reversed));
  }

  /** Writes until `stop`. Throws if the cluster rejects a batch. */
  async start(): Promise<void> {
    await Promise.all(this.#agents.map((_, shard) => this.#write(shard)));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    while (this.#busy > 0) await sleep(PAUSE_MS);
  }

  /** Resolves when no batch is on its way. A batch that was refused is repeated first. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    while (this.#busy > 0) await sleep(PAUSE_MS);
  }

  resume(): void {
    this.#isPaused = false;
  }

  describe(): string {
    const text = `${this.#batches} batches acknowledged, ${this.#failures} attempts refused.`;
    [this.#batches, this.#failures] = [0, 0];
    return text;
  }

  async #write(shard: number): Promise<void> {
    for (let batch = 0; !this.#stop.signal.aborted; batch++) {
      await sleep(PAUSE_MS);
      if (this.#isPaused || this.#stop.signal.aborted) continue;
      this.#busy++;
      try {
        await this.#writeBatch(shard, batch);
      } finally {
        this.#busy--;
      }
    }
  }

  async #writeBatch(shard: number, batch: number): Promise<void> {
    const tsMs = Date.now();
    const samples = (this.#agents[shard] ?? []).map(
      (apId): AgentSample => ({ apId, tsMs, metrics: { n: batch }, texts: {}, receivedMs: tsMs }),
    );
    const token = crypto.randomUUID();
    const isAcknowledged =
      (await this.#untilDone(() => this.#store.insert(samples, token))) &&
      (batch % REPEAT_EVERY > 0 || (await this.#untilDone(() => this.#otherStore.insert(samples, token))));
    if (!isAcknowledged) return;
    const written = this.written[shard];
    if (written !== undefined) {
      written.samples += samples.length;
      written.total += samples.length * batch;
    }
    this.#batches++;
    await this.#untilDone(async () => {
      if ((await this.#store.stored(samples)).length < samples.length) this.misses++;
    });
  }

  /** Repeats work during an outage. Returns false if the check ends before. */
  async #untilDone(work: () => Promise<void>): Promise<boolean> {
    for (; !this.#stop.signal.aborted; await sleep(RETRY_MS)) {
      try {
        await work();
        return true;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        this.#failures++;
      }
    }
    return false;
  }
}

/** Returns names of agents that the cluster has on a shard. */
function agentsOn(shard: number, shards: number): string[] {
  const names: string[] = [];
  for (let i = 0; names.length < AGENTS_PER_SHARD; i++) {
    const name = `check-${i}`;
    if (Number(cityHash64(name) % BigInt(shards)) === shard) names.push(name);
  }
  return names;
}
