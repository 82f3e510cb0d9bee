import { DurableObject } from "cloudflare:workers";
import { parseEnv } from "../env.ts";
import { Unavailable } from "../errors.ts";
import { describeError, log } from "../log.ts";
import { createClickHouse } from "./clickhouse.ts";
import { GroupCommit } from "./group-commit.ts";
import { type AgentSample, createTelemetryStore, type TelemetryStore } from "./store.ts";

/** What became of samples. Not an exception: those lose their kind on the way out of an object. */
export type Appended = "committed" | "unavailable";

/** A few agents' present: their samples are committed here, those of many requests in one insert. */
export class AgentShard extends DurableObject<Env> {
  readonly #store: TelemetryStore;
  readonly #commits: GroupCommit<AgentSample>;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const config = parseEnv(env);
    this.#store = createTelemetryStore(
      createClickHouse({
        url: config.CLICKHOUSE_URL,
        username: config.CLICKHOUSE_USER,
        password: config.CLICKHOUSE_PASSWORD,
        database: config.CLICKHOUSE_DATABASE,
      }),
    );
    this.#commits = new GroupCommit({
      commit: (samples, token) => this.#store.insert(samples, token),
      gatherMs: 3,
      maxBatch: 5_000,
      maxWaiting: 50_000,
      attempts: 1,
    });
  }

  async append(samples: AgentSample[]): Promise<Appended> {
    try {
      await this.#commits.add(samples);
      return "committed";
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      log.warn("samples not committed", { samples: samples.length, error: describeError(error) });
      return "unavailable";
    }
  }
}
