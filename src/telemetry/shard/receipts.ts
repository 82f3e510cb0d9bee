import type { Source } from "../samples.ts";
import type { AgentSample } from "../store/telemetry-store.ts";

/** When the service last received something from agents, as columns. */
export interface ReceiptColumns {
  apIds: string[];
  receivedMs: number[];
}

/** When the service last received something of an agent from one source. */
export interface SourceReceipt extends Source {
  receivedMs: number;
}

/** The latest receipt of an agent, also without a source. */
interface AgentReceipt {
  receivedMs: number;
  sources: SourceReceipt[];
}

/** An agent has one source, or two while it is moved to another one. */
const MAX_SOURCES = 8;

/** Remembers when the shard last received something, by agent and source. */
export class Receipts {
  readonly #options: { maxAgents: number; now: () => number };
  /** In the order of the agents' first reports. */
  readonly #agents = new Map<string, AgentReceipt>();

  constructor(options: { maxAgents: number; now: () => number }) {
    this.#options = options;
  }

  add(samples: readonly AgentSample[]): void {
    const { maxAgents, now } = this.#options;
    for (const { apId, receivedMs = now(), protocol, app } of samples) {
      const agent = this.#agents.get(apId) ?? this.#addAgent(apId);
      agent.receivedMs = Math.max(receivedMs, agent.receivedMs);
      if (protocol !== undefined) addSource(agent.sources, { protocol, app, receivedMs });
    }
    for (const apId of this.#agents.keys()) {
      if (this.#agents.size <= maxAgents) break;
      this.#agents.delete(apId);
    }
  }

  #addAgent(apId: string): AgentReceipt {
    const agent: AgentReceipt = { receivedMs: 0, sources: [] };
    this.#agents.set(apId, agent);
    return agent;
  }

  /** Returns the times of those agents that are known. Default: of all agents. */
  read(apIds?: readonly string[]): ReceiptColumns {
    const known = apIds === undefined ? [...this.#agents.keys()] : apIds.filter((apId) => this.#agents.has(apId));
    return { apIds: known, receivedMs: known.map((apId) => this.#agents.get(apId)?.receivedMs ?? 0) };
  }

  /** Returns the sources of an agent's samples, the latest first. */
  sources(apId: string): SourceReceipt[] {
    return (this.#agents.get(apId)?.sources ?? []).toSorted(byTime);
  }
}

const byTime = (a: SourceReceipt, b: SourceReceipt): number => b.receivedMs - a.receivedMs;

function addSource(sources: SourceReceipt[], { protocol, app, receivedMs }: SourceReceipt): void {
  const known = sources.find((other) => other.protocol === protocol && other.app === app);
  if (known !== undefined) {
    known.receivedMs = Math.max(receivedMs, known.receivedMs);
    return;
  }
  sources.push({ protocol, app, receivedMs });
  if (sources.length > MAX_SOURCES) sources.sort(byTime).pop();
}
