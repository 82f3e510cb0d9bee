import type { AgentSample } from "../store/telemetry-store.ts";

/** When the service last received something from agents, as columns. */
export interface ReceiptColumns {
  apIds: string[];
  receivedMs: number[];
}

/** Remembers when the shard last received something, by agent. */
export class Receipts {
  readonly #options: { maxAgents: number; now: () => number };
  /** In the order of the agents' first reports. */
  readonly #receivedMs = new Map<string, number>();

  constructor(options: { maxAgents: number; now: () => number }) {
    this.#options = options;
  }

  add(samples: readonly AgentSample[]): void {
    const { maxAgents, now } = this.#options;
    for (const { apId, receivedMs = now() } of samples)
      this.#receivedMs.set(apId, Math.max(receivedMs, this.#receivedMs.get(apId) ?? 0));
    for (const apId of this.#receivedMs.keys()) {
      if (this.#receivedMs.size <= maxAgents) break;
      this.#receivedMs.delete(apId);
    }
  }

  /** Returns the times of those agents that are known. Default: of all agents. */
  read(apIds?: readonly string[]): ReceiptColumns {
    const known =
      apIds === undefined ? [...this.#receivedMs.keys()] : apIds.filter((apId) => this.#receivedMs.has(apId));
    return { apIds: known, receivedMs: known.map((apId) => this.#receivedMs.get(apId) ?? 0) };
  }
}
