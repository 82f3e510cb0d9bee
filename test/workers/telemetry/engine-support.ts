import { env, runInDurableObject } from "cloudflare:test";
import type { WatchedAgent } from "../../../src/accounts/agents/agent-lists.ts";
import type { EnabledRule } from "../../../src/alerts/rule-store.ts";
import type { ShardEvent } from "../../../src/alerts/shard-events.ts";
import { expandGroups, type Labels, parseSelector } from "../../../src/lib/selectors.ts";
import { RuleSpec } from "../../../src/schemas/alerts/rule.ts";
import { AlertEngine } from "../../../src/telemetry/shard/alert-engine.ts";
import { EngineStore } from "../../../src/telemetry/shard/alerting/engine-store.ts";
import { Journal } from "../../../src/telemetry/shard/journal.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { uniqueName } from "../support.ts";
import { textOf } from "./journal-support.ts";

export const ruleOf = (id: string, spec: Record<string, unknown>): EnabledRule => {
  const parsed = RuleSpec.parse(spec);
  return { id, name: id, spec: parsed, selector: expandGroups(parseSelector(parsed.selector), new Map()) ?? [] };
};

export const agentOf = (apId: string, labels: Labels = {}, interval = 1): WatchedAgent => ({
  apId,
  labels,
  ownerId: null,
  interval,
});

/** The time of a new test. */
export const START_MS = 1_700_000_000_000;

/** An alert engine and a journal on the SQLite of a Durable Object, as a shard has them. */
export class EngineTest {
  readonly #storage: DurableObjectStorage;
  nowMs = START_MS;
  store!: EngineStore;
  journal!: Journal;
  engine!: AlertEngine;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.restart();
  }

  /** Loses everything in memory. */
  restart(): void {
    const { sql } = this.#storage;
    this.store = new EngineStore(sql);
    const limits = { maxLength: 1e6, maxRowLength: 1_000, maxCachedLength: 1_000 };
    this.journal = new Journal({
      storage: this.#storage,
      ...limits,
      isReplayed: true,
      onRewrite: () => this.checkpoint(),
    });
    this.engine = new AlertEngine({
      store: this.store,
      replay: () => this.journal.replay(),
      owns: () => true,
      now: () => this.nowMs,
    });
    this.checkpoint();
  }

  watch(rules: EnabledRule[], agents: WatchedAgent[]): void {
    this.#storage.transactionSync(() => {
      this.engine.apply({ mark: 1, rules, agents: { found: agents } }, (apId) => this.journal.samplesOf(apId));
      this.engine.write();
    });
    this.journal.checkpoint();
  }

  /** Appends samples as a shard does. @param fails whether the storage fails at the end of the transaction */
  append(samples: AgentSample[], fails = false): void {
    const text = textOf(samples);
    this.engine.evaluate(samples);
    if (!this.journal.fitsInRow(text)) this.engine.touch(samples);
    try {
      this.journal.append(text, samples, () => {
        this.engine.write();
        if (fails) throw new Error("disk full");
      });
    } catch {
      this.engine.restore();
    }
  }

  /** Reports metrics at the present time. */
  report(apId: string, metrics: Record<string, number>, tsMs = this.nowMs): void {
    this.append([{ apId, tsMs, metrics, texts: {}, receivedMs: this.nowMs }]);
  }

  tick(): void {
    this.#storage.transactionSync(() => {
      this.engine.tick(this.nowMs);
      this.engine.write();
    });
  }

  checkpoint(): void {
    this.#storage.transactionSync(() => this.engine.checkpoint());
    this.journal.checkpoint();
  }

  /** Writes the journal to the telemetry store, which may have some values already. */
  flush(isRewritten: boolean): void {
    if (this.journal.isEmpty) return;
    const range = { last: this.journal.lastSeq, token: uniqueName(), atMs: this.nowMs };
    const [row] = this.journal.next(1, 1);
    const changed = isRewritten && row !== undefined ? [{ ...row, samples: row.samples.map(withoutMetrics) }] : [];
    this.journal.begin(range, changed);
    this.journal.end(range);
  }

  /** All events that the shard would upload. */
  get events(): ShardEvent[] {
    return this.store.outgoing(100_000).map(({ event }) => event);
  }

  /** The alerts that fired and ended, in short. */
  get transitions(): string[] {
    return this.events.flatMap((event) => {
      const { kind, atMs, apId } = event;
      if (kind === "presence") return [`${apId} ${event.isOnline ? "online" : "offline"} ${atMs}`];
      const value = kind === "alert" ? event.value : event.groupValue;
      return [`${apId} ${event.rule.id} ${event.isFiring ? "fired" : "resolved"} ${atMs} ${value}`];
    });
  }
}

const withoutMetrics = (sample: AgentSample): AgentSample => ({ ...sample, metrics: {} });

/** Runs a test with an engine in a Durable Object that has none yet. */
export const withEngine = <T>(test: (engine: EngineTest) => Promise<T> | T): Promise<T> =>
  runInDurableObject(env.LEDGER.get(env.LEDGER.idFromName(uniqueName())), (_, { storage }) =>
    test(new EngineTest(storage)),
  );
