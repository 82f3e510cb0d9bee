import * as z from "zod";
import type { WatchedAgent } from "../../../accounts/agents/agent-lists.ts";
import type { EnabledRule } from "../../../alerts/rule-store.ts";
import type { ShardEvent } from "../../../alerts/shard-events.ts";

/**
 * The tables of the alert engine in the shard's SQLite. `watched_rules` and `watched_agents` are copies from libSQL: a shard that starts
 * evaluates its first report with them, also while libSQL is down.
 */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS watched_rules (id TEXT PRIMARY KEY, rule TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS watched_agents (ap_id TEXT PRIMARY KEY, agent TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS agent_states (ap_id TEXT PRIMARY KEY, state TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS baselines (key TEXT PRIMARY KEY, hour_ms INTEGER NOT NULL, means TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS outgoing_events (seq INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS engine_values (name TEXT PRIMARY KEY, value NOT NULL);
`;

/** `mark`: of the watch feed. `epoch`: random, chosen once. The others are times. */
export type EngineValue = "mark" | "epoch" | "alarm_ms" | "release_ms";

export interface OutgoingRow {
  seq: number;
  event: ShardEvent;
}

const Pair = z.object({ key: z.string(), value: z.string() });
const Sequenced = z.object({ seq: z.int(), event: z.string() });
const Value = z.object({ value: z.union([z.string(), z.number()]) });
const Count = z.object({ count: z.int() });

export class EngineStore {
  readonly #sql: SqlStorage;
  #outgoing: number;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(SCHEMA);
    this.#outgoing = this.#countOutgoing();
  }

  /** The number of events that libSQL does not have yet. */
  get outgoingCount(): number {
    return this.#outgoing;
  }

  value(name: EngineValue): string | number | undefined {
    const [row] = this.#sql.exec("SELECT value FROM engine_values WHERE name = ?", name).toArray();
    return row === undefined ? undefined : Value.parse(row).value;
  }

  time(name: "alarm_ms" | "release_ms"): number | undefined {
    const value = this.value(name);
    return value === undefined ? undefined : Number(value);
  }

  setValue(name: EngineValue, value: string | number | undefined): void {
    if (value === undefined) this.#sql.exec("DELETE FROM engine_values WHERE name = ?", name);
    else this.#sql.exec("INSERT OR REPLACE INTO engine_values (name, value) VALUES (?, ?)", name, value);
  }

  rules(): EnabledRule[] {
    // Written by `setRules`.
    return this.#pairs("SELECT id AS key, rule AS value FROM watched_rules ORDER BY id").map(
      ({ value }) => JSON.parse(value) as EnabledRule,
    );
  }

  setRules(rules: readonly EnabledRule[]): void {
    this.#sql.exec("DELETE FROM watched_rules");
    for (const rule of rules)
      this.#sql.exec("INSERT INTO watched_rules (id, rule) VALUES (?, ?)", rule.id, JSON.stringify(rule));
  }

  agents(): WatchedAgent[] {
    return this.#pairs("SELECT ap_id AS key, agent AS value FROM watched_agents").map(
      ({ value }) => JSON.parse(value) as WatchedAgent,
    );
  }

  saveAgent(agent: WatchedAgent): void {
    const text = JSON.stringify(agent);
    this.#sql.exec("INSERT OR REPLACE INTO watched_agents (ap_id, agent) VALUES (?, ?)", agent.apId, text);
  }

  /** Returns the states by agent, as `serializeEntry` wrote them. */
  states(): { key: string; value: string }[] {
    return this.#pairs("SELECT ap_id AS key, state AS value FROM agent_states");
  }

  saveState(apId: string, state: string): void {
    this.#sql.exec("INSERT OR REPLACE INTO agent_states (ap_id, state) VALUES (?, ?)", apId, state);
  }

  forget(apId: string): void {
    this.#sql.exec("DELETE FROM watched_agents WHERE ap_id = ?", apId);
    this.#sql.exec("DELETE FROM agent_states WHERE ap_id = ?", apId);
  }

  baselines(): { key: string; value: string }[] {
    return this.#pairs("SELECT key, means AS value FROM baselines");
  }

  saveBaseline(key: string, hourMs: number, means: string): void {
    this.#sql.exec("INSERT OR REPLACE INTO baselines (key, hour_ms, means) VALUES (?, ?, ?)", key, hourMs, means);
  }

  deleteBaselinesBefore(hourMs: number): void {
    this.#sql.exec("DELETE FROM baselines WHERE hour_ms < ?", hourMs);
  }

  addOutgoing(event: ShardEvent): void {
    this.#sql.exec("INSERT INTO outgoing_events (event) VALUES (?)", JSON.stringify(event));
    this.#outgoing++;
  }

  /** Returns the first events, in their order. */
  outgoing(limit: number): OutgoingRow[] {
    return this.#sql
      .exec("SELECT seq, event FROM outgoing_events ORDER BY seq LIMIT ?", limit)
      .toArray()
      .map((row) => Sequenced.parse(row))
      .map(({ seq, event }) => ({ seq, event: JSON.parse(event) as ShardEvent }));
  }

  deleteOutgoing(lastSeq: number): void {
    this.#sql.exec("DELETE FROM outgoing_events WHERE seq <= ?", lastSeq);
    this.#outgoing = this.#countOutgoing();
  }

  /** Counts the events again, after a transaction that failed. */
  recount(): void {
    this.#outgoing = this.#countOutgoing();
  }

  #countOutgoing(): number {
    return Count.parse(this.#sql.exec("SELECT count(*) AS count FROM outgoing_events").one()).count;
  }

  #pairs(query: string): { key: string; value: string }[] {
    return this.#sql
      .exec(query)
      .toArray()
      .map((row) => Pair.parse(row));
  }
}
