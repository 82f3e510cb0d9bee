import { AgentEntry } from "./agent-entry.ts";

/** All agents that the shard knows of, up to a limit. */
export class AgentEntries {
  readonly #maxAgents: number;
  readonly #entries = new Map<string, AgentEntry>();

  constructor(maxAgents: number) {
    this.#maxAgents = maxAgents;
  }

  get(apId: string): AgentEntry | undefined {
    return this.#entries.get(apId);
  }

  /** Returns the entry of an agent, a new one if there is none. */
  getOrAdd(apId: string): AgentEntry {
    const known = this.#entries.get(apId);
    if (known !== undefined) return known;
    if (this.#entries.size >= this.#maxAgents) this.#dropUnknown();
    const entry = new AgentEntry(apId);
    this.#entries.set(apId, entry);
    return entry;
  }

  delete(apId: string): void {
    this.#entries.delete(apId);
  }

  names(): MapIterator<string> {
    return this.#entries.keys();
  }

  [Symbol.iterator](): MapIterator<AgentEntry> {
    return this.#entries.values();
  }

  /** Returns when the first of them is due. */
  earliestDueMs(): number {
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const { dueMs } of this.#entries.values()) if (dueMs < earliestMs) earliestMs = dueMs;
    return earliestMs;
  }

  /** Drops the first agent that libSQL does not have. */
  #dropUnknown(): void {
    for (const [apId, { info }] of this.#entries) {
      if (info !== undefined) continue;
      this.#entries.delete(apId);
      return;
    }
  }
}
