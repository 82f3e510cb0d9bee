import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { until } from "../product.ts";
import { forEachConcurrently, Quantiles } from "../stats.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import { type BenchContext, CONNECTIONS, fields, inTurns, load } from "./suite.ts";

/** The cost of alert rules at ingest, and the time from a sample to the receiver of a webhook. */

const RULES = 100;
/** Shards learn of a changed rule within some seconds. */
const RULES_KNOWN_WITHIN_MS = 8_000;
/** Shards save states every 20 seconds, so the rate is measured for five times the time of other figures. */
const TIMES_LONGER = 5;
const RECEIVED_WITHIN_MS = 60_000;
const METRIC = "alarm";

export async function benchAlerts(context: BenchContext): Promise<void> {
  const { product, client, isQuick } = context;
  const count = isQuick ? CONNECTIONS : 1_000;
  print(`Creating ${count} agents.`);
  const agents = await makeAgents(product.dataDir, "bench-alerts", count);
  const { token } = await makeUser(product.dataDir, "bench-alerts@example.com", "none", ["admin"]);
  // The first request with a token costs more, since the service looks up its account.
  await forEachConcurrently(agents, async (agent) => {
    await client.request(UPDATE_PATH, { token: agent.token, body: { payload: fields("field", 0) } });
  });
  await measureRules(context, agents, token);
  await measureWebhook(context, agents.slice(0, CONNECTIONS), token);
}

/** Rules of all kinds. None fires: firing costs more, but only when something changes. */
function ruleSpec(i: number): object {
  const metric = `field_${i % 10}`;
  switch (i % 5) {
    case 0:
      return { condition: { no_report_s: 3_600 + i } };
    case 1:
      return { condition: { rate_of: metric, over_s: 60, op: ">", value: 1e12 } };
    case 2:
      return {
        condition: {
          any: [
            { metric, op: ">", value: 1e12 + i },
            { metric: `field_${(i + 1) % 10}`, op: "<", value: -i },
          ],
        },
      };
    default:
      return { condition: { metric, op: ">", value: 1e12 + i }, for_s: 60, clear: { for_s: 60 } };
  }
}

async function measureRules(context: BenchContext, agents: readonly TestAgent[], token: string): Promise<void> {
  const { client, report } = context;
  const ids: string[] = [];
  const reports = (seconds: number) => {
    const next = (connection: number, i: number) => ({
      path: UPDATE_PATH,
      token: agents[(connection + i * CONNECTIONS) % agents.length]?.token,
      body: JSON.stringify({ ts: Date.now(), payload: fields("field", i % 1_000) }),
    });
    return load({ ...context, seconds }, next, { components: ["worker", "clickhouse"] });
  };
  const measure = async () => {
    await sleep(RULES_KNOWN_WITHIN_MS);
    // Once without measuring: a shard creates the state of a rule at the next report of each agent.
    await reports(context.seconds);
    // Long enough for shards to save these states.
    return await reports(TIMES_LONGER * context.seconds);
  };
  const withoutRules = async () => {
    for (const id of ids.splice(0)) await client.request(`/api/v1/alerts/rules/${id}`, { method: "DELETE", token });
    return await measure();
  };
  const withRules = async () => {
    for (let i = 0; i < RULES; i++) {
      const body = { name: `Rule ${i}`, spec: ruleSpec(i) };
      ids.push((await client.call<{ id: string }>("/api/v1/alerts/rules", { token, body })).id);
    }
    return await measure();
  };
  const { without, with100 } = await inTurns(
    { without: withoutRules, with100: withRules },
    (result) => result.perSecond,
  );
  const what = `reports of ${agents.length} agents, ${CONNECTIONS} at a time`;
  report.add(`${what}, without rules`, without.perSecond, "/s", without.details);
  const ratio = { of: "the rate without rules", value: with100.perSecond / without.perSecond, wanted: "at least 0.9" };
  report.add(`${what}, with ${RULES} rules`, with100.perSecond, "/s", with100.details, ratio);
  for (const id of ids) await client.request(`/api/v1/alerts/rules/${id}`, { method: "DELETE", token });
}

/** Each agent fires and ends its alert in turns, about once a second. */
async function measureWebhook(context: BenchContext, agents: readonly TestAgent[], token: string): Promise<void> {
  const { client, report, seconds } = context;
  const sentMs = new Map<string, number>();
  const tookMs = new Quantiles();
  const receive = async (request: IncomingMessage): Promise<void> => {
    const { data } = (await json(request)) as { data: { ap_id: string; type: string } };
    const key = `${data.ap_id} ${data.type}`;
    const sent = sentMs.get(key);
    // A second delivery of the same event does not count.
    sentMs.delete(key);
    if (sent !== undefined) tookMs.add(performance.now() - sent);
  };
  const server = createServer(async (request, response) => {
    await receive(request);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const filter = { types: ["alert.fired", "alert.resolved"] };
  const spec = { condition: { metric: METRIC, op: ">", value: 0.5 } };
  await client.call("/api/v1/alerts/rules", { token, body: { name: "Alarm", spec } });
  await client.call("/api/v1/subscriptions", {
    token,
    body: { name: "bench", filter, target: { kind: "webhook", address } },
  });
  await sleep(RULES_KNOWN_WITHIN_MS);
  let sent = 0;
  const rounds = Math.max(4, Math.round(4 * seconds));
  for (let round = 0; round < rounds; round++) {
    const [value, type] = round % 2 === 0 ? [1, "alert.fired"] : [0, "alert.resolved"];
    await forEachConcurrently(agents, async (agent) => {
      sentMs.set(`${agent.apId} ${type}`, performance.now());
      await client.call(UPDATE_PATH, { token: agent.token, body: { payload: { [METRIC]: value } } });
      sent++;
    });
    await sleep(1_000);
  }
  await until(() => tookMs.count >= sent, RECEIVED_WITHIN_MS).catch(() => {});
  server.closeAllConnections();
  server.close();
  report.require("every change of an alert reached the webhook", tookMs.count >= sent, {
    sent,
    received: tookMs.count,
  });
  const what = `from a sample to the webhook, ${agents.length} alerts at a time`;
  const p99Ms = tookMs.at(0.99);
  report.add(`its p99: ${what}`, p99Ms, "ms", tookMs.details(), {
    of: "1 s",
    value: p99Ms / 1000,
    wanted: "at most 1",
  });
}
