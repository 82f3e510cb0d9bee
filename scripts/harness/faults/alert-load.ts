import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { compileRule, type RuleState, step } from "../../../src/rules/evaluator.ts";
import { RuleSpec } from "../../../src/schemas/alerts/rule.ts";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import type { ApiClient, Target } from "../client.ts";
import { until } from "../product.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import { createWorkload, type Workload } from "../workload.ts";

/**
 * Agents whose alerts fire and end all the time, and an unreliable webhook. In the end the event log has exactly the transitions that the
 * evaluator gives for the acknowledged samples, and the webhook has received each event in the order of its agent. It may receive an
 * event again, with the same id.
 */

interface AlertsOptions {
  agents: number;
  pauseMs: number;
}

const METRIC = "fault_alert";
const LIMIT = 0.5;
/** The shards learn of a new rule within some seconds. Until then all samples are below the limit. */
const RULE_KNOWN_WITHIN_MS = 12_000;
const LOGGED_WITHIN_MS = 120_000;
const DELIVERED_WITHIN_MS = 300_000;
/** Events that one request returns. */
const PAGE = 1_000;

interface AlertEvent {
  id: number;
  type: string;
  ap_id: string;
}

/** The transitions of an agent, oldest first. */
type Transitions = string[];

export async function startAlerts(target: Target, { agents: count, pauseMs }: AlertsOptions): Promise<Workload> {
  const { client, dataDir } = target;
  const prefix = `alerts-${Date.now()}`;
  const agents = await makeAgents(dataDir, prefix, count);
  const { token } = await makeUser(dataDir, `${prefix}@example.com`, "none", ["admin"]);
  const metric = `${METRIC}_${Date.now()}`;
  const spec = RuleSpec.parse({
    condition: {
      any: [
        { metric, op: ">", value: LIMIT },
        // Holds with the second of the two samples below the limit.
        { rate_of: metric, over_s: 1, op: "<", value: -LIMIT },
      ],
    },
  });
  const receiver = await UnreliableReceiver.start();
  const types = ["alert.fired", "alert.resolved"];
  const webhook = { name: prefix, filter: { types }, target: { kind: "webhook", address: receiver.url } };
  await client.call("/api/v1/alerts/rules", { token, body: { name: prefix, spec } });
  await client.call("/api/v1/subscriptions", { token, body: webhook });

  const expected = new Map(agents.map(({ apId }) => [apId, new ExpectedTransitions(spec)]));
  const stop = new AbortController();
  const senders = agents.map((agent) =>
    sendInTurns(client, agent, { spec, pauseMs, signal: stop.signal }, (tsMs, value) =>
      expected.get(agent.apId)?.add(tsMs, value),
    ),
  );
  return createWorkload("alerts", stop, senders, {
    acknowledged: () => [...expected.values()].reduce((sum, { list }) => sum + list.length, 0),
    async settle() {
      const startedMs = performance.now();
      const total = [...expected.values()].reduce((sum, { list }) => sum + list.length, 0);
      let logged: AlertEvent[] = [];
      const isLogged = async () => {
        logged = await readEvents(client, token, new Set(expected.keys()), types);
        return logged.length >= total;
      };
      await until(isLogged, LOGGED_WITHIN_MS, 1_000).catch(() => {});
      const isDelivered = () => logged.every(({ id }) => receiver.received.has(id));
      await until(isDelivered, DELIVERED_WITHIN_MS, 1_000).catch(() => {});
      const settledMs = performance.now() - startedMs;
      receiver.close();
      const inLog = transitionsOf(logged);
      const delivered = transitionsOf([...receiver.received.values()].filter(({ ap_id }) => expected.has(ap_id)));
      let [lost, duplicates, unordered, undelivered] = [0, 0, 0, 0];
      for (const [apId, { list }] of expected) {
        const found = inLog.get(apId) ?? [];
        lost += Math.max(0, list.length - found.length);
        duplicates += Math.max(0, found.length - list.length);
        if (found.length === list.length && String(found) !== String(list)) unordered++;
        undelivered += Math.max(0, found.length - (delivered.get(apId)?.length ?? 0));
        if (String(delivered.get(apId) ?? []) !== String(found)) unordered++;
      }
      const { changed } = receiver;
      return { lost, duplicates, violations: { unordered, undelivered, "changed on repetition": changed }, settledMs };
    },
  });
}

/** Sends one sample above the limit and two below it, in turns. Repeats each until it is acknowledged. */
async function sendInTurns(
  client: ApiClient,
  { token }: TestAgent,
  { spec, pauseMs, signal }: { spec: RuleSpec; pauseMs: number; signal: AbortSignal },
  onAcknowledged: (tsMs: number, value: number) => void,
): Promise<void> {
  const [metric = METRIC] = compileRule(spec).metrics;
  const startMs = performance.now() + RULE_KNOWN_WITHIN_MS;
  let tsMs = 0;
  for (let i = 0; !signal.aborted; i++) {
    const value = i % 3 === 0 && performance.now() >= startMs ? 1 : 0;
    tsMs = Math.max(tsMs + 1, Date.now());
    const body = { ts: tsMs, payload: { [metric]: value } };
    // Not cancelled by the end of the load: the outcome of every sample must be known.
    for (let isDone = false; !isDone; await sleep(pauseMs)) {
      isDone = (await client.attempt(UPDATE_PATH, { token, body }))?.status === 200;
    }
    onAcknowledged(tsMs, value);
  }
}

/** The transitions that the evaluator gives for the samples of one agent. */
class ExpectedTransitions {
  readonly list: Transitions = [];
  readonly #rule: ReturnType<typeof compileRule>;
  #state: RuleState | undefined;

  constructor(spec: RuleSpec) {
    this.#rule = compileRule(spec);
  }

  add(atMs: number, value: number): void {
    const [metric = METRIC] = this.#rule.metrics;
    const { state, transitions } = step(this.#rule, this.#state, { atMs, metrics: { [metric]: value } });
    this.#state = state;
    for (const { type } of transitions) this.list.push(`alert.${type}`);
  }
}

async function readEvents(
  client: ApiClient,
  token: string,
  apIds: ReadonlySet<string>,
  types: readonly string[],
): Promise<AlertEvent[]> {
  const all: AlertEvent[] = [];
  for (let after = 0; ; ) {
    const query = new URLSearchParams({ after: String(after), types: types.join(","), limit: String(PAGE) });
    const response = await client.attempt(`/api/v1/events?${query}`, { token });
    if (response?.status !== 200) return [];
    const page = response.body as { events: AlertEvent[]; next_after: number; has_more: boolean };
    for (const event of page.events) if (apIds.has(event.ap_id)) all.push(event);
    if (!page.has_more) return all;
    after = page.next_after;
  }
}

function transitionsOf(events: readonly AlertEvent[]): Map<string, Transitions> {
  const byAgent = Map.groupBy(events, ({ ap_id }) => ap_id);
  return new Map([...byAgent].map(([apId, list]) => [apId, list.map(({ type }) => type)]));
}

const FAILING_SHARE = 0.2;
const HANGING_SHARE = 0.001;
/** Longer than the service waits. */
const HANG_MS = 15_000;

/** A webhook that fails, hangs, or accepts. */
class UnreliableReceiver {
  /** Accepted events, in the order of their first acceptance. */
  readonly received = new Map<number, AlertEvent>();
  /** Repetitions with another content. */
  changed = 0;
  readonly #server = createServer((request, response) => void this.#receive(request, response));

  static async start(): Promise<UnreliableReceiver> {
    const receiver = new UnreliableReceiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { data: event } = (await json(request)) as { data: AlertEvent };
    const chance = Math.random();
    if (chance < FAILING_SHARE) return void response.writeHead(500).end();
    if (chance < FAILING_SHARE + HANGING_SHARE) return void setTimeout(() => response.destroy(), HANG_MS);
    const first = this.received.get(event.id);
    if (first === undefined) this.received.set(event.id, event);
    else if (JSON.stringify(first) !== JSON.stringify(event)) this.changed++;
    response.end();
  }
}
