import { env, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { createPlacement, shardName } from "../../../src/telemetry/shard/placement.ts";
import { adminToken, newAgent, send, testStore, uniqueName } from "../support.ts";
import { post } from "../telemetry/requests.ts";
import { createRule, createSilence, deleteRule, eventsOf, listAlerts } from "./requests.ts";

const shardObject = (apId: string) =>
  env.AGENT_SHARD.get(env.AGENT_SHARD.idFromName(shardName(createPlacement(parseEnv(env)).shardOf(apId))));

/** Stops the shard at once, as if its process was killed. An eviction would wait for the calls of live streams of other tests. */
const kill = async (apId: string) =>
  await runInDurableObject(shardObject(apId), (_, state) => state.abort("killed by the test")).catch(() => {});

const SOON = { timeout: 20_000, interval: 200 };
const created: string[] = [];
/** Creates a rule that watches one site. The rules of other tests would make the shards slower. */
const ruleFor = async (site: string, spec: object) => {
  const rule = await createRule({ selector: `site=${site}`, ...spec });
  created.push(rule.id);
  return rule;
};
afterEach(async () => {
  for (const id of created.splice(0)) await deleteRule(id);
});

const HIGH = { condition: { metric: "load", op: ">", value: 0.9 }, text: "{{ap_id}}: {{value}}" };
const at = (offsetMs = 0) => new Date(Date.now() + offsetMs).toISOString();

describe("an alert", () => {
  it("fires at ingest and is resolved by a later report, with one event each", async () => {
    const site = uniqueName();
    const { apId, token } = await newAgent({}, { site });
    const rule = await ruleFor(site, { ...HIGH, severity: "critical", labels: { team: "radio" } });
    await post({ ts: at(-2_000), payload: { load: 0.95 } }, token);
    const firing = () => listAlerts(`selector=site=${site}`);
    await expect.poll(firing, SOON).toHaveLength(1);
    const [alert] = await firing();
    expect(alert).toMatchObject({
      rule_id: rule.id,
      rule: rule.name,
      severity: "critical",
      state: "firing",
      ap_id: apId,
      text: `${apId}: 0.95`,
      value: 0.95,
      labels: { site, team: "radio", emulated: "false" },
      silenced: false,
    });
    // A late sample and a repeated one.
    await post({ ts: at(-5_000), payload: { load: 0.1 } }, token);
    await post({ ts: alert?.fired_at, payload: { load: 0.1 } }, token);
    expect(await firing()).toHaveLength(1);
    await post({ ts: at(), payload: { load: 0.1 } }, token);
    await expect.poll(firing, SOON).toEqual([]);
    expect(await listAlerts(`state=resolved&selector=site=${site}`)).toMatchObject([
      { id: alert?.id, state: "resolved" },
    ]);
    expect(await eventsOf(apId)).toEqual(["agent.online", "alert.fired", "alert.resolved"]);
  });

  it("keeps its state if the shard restarts", async () => {
    const site = uniqueName();
    const { apId, token } = await newAgent({}, { site });
    await ruleFor(site, { ...HIGH, for_s: 2 });
    await post({ ts: at(-1_000), payload: { load: 0.95 } }, token);
    await kill(apId);
    await expect.poll(() => listAlerts(`selector=site=${site}`), SOON).toHaveLength(1);
    await kill(apId);
    await post({ ts: at(), payload: { load: 0.95 } }, token);
    await post({ ts: at(5), payload: { load: 0.1 } }, token);
    await expect.poll(() => eventsOf(apId), SOON).toEqual(["agent.online", "alert.fired", "alert.resolved"]);
  });

  it("fires by an alarm when the agent does not report any more", async () => {
    const site = uniqueName();
    const { apId, token } = await newAgent({}, { site });
    await ruleFor(site, { condition: { no_report_s: 1 } });
    await post({ payload: { load: 0.5 } }, token);
    await expect.poll(() => listAlerts(`selector=site=${site}`), SOON).toMatchObject([{ ap_id: apId, value: 1 }]);
  });

  it("fires for an agent that reported before the rule existed and never again", async () => {
    const site = uniqueName();
    const { apId, token } = await newAgent({}, { site });
    await post({ payload: { load: 0.5 } }, token);
    await ruleFor(site, { condition: { no_report_s: 1 } });
    await expect.poll(() => listAlerts(`selector=site=${site}`), SOON).toMatchObject([{ ap_id: apId }]);
  });

  it("fires if a metric is below its mean at this hour of earlier days", async () => {
    const site = uniqueName();
    const { apId, token } = await newAgent({}, { site });
    const tsMs = Date.now() - 86_400_000;
    await testStore().insert([{ apId, tsMs, metrics: { users: 100 }, texts: {} }], uniqueName());
    await ruleFor(site, { condition: { metric: "users", op: "<", baseline: { days: 2, factor: 0.5 } } });
    await post({ payload: { users: 60 } }, token);
    await post({ ts: at(5), payload: { users: 40 } }, token);
    await expect.poll(() => listAlerts(`selector=site=${site}`), SOON).toMatchObject([{ ap_id: apId, value: 40 }]);
  });

  it("ends when its rule is disabled", async () => {
    const site = uniqueName();
    const { token } = await newAgent({}, { site });
    const { id, name, spec } = await ruleFor(site, HIGH);
    await post({ payload: { load: 0.95 } }, token);
    await expect.poll(() => listAlerts(`selector=site=${site}`), SOON).toHaveLength(1);
    await send("PUT", `/api/v1/alerts/rules/${id}`, { name, spec, enabled: false }, await adminToken());
    await expect.poll(() => listAlerts(`selector=site=${site}`), SOON).toEqual([]);
  });
});

describe("a silence", () => {
  it("holds back the event of an alert, which is written if the alert still fires afterwards", async () => {
    const site = uniqueName();
    const { apId, token } = await newAgent({}, { site });
    await ruleFor(site, HIGH);
    await createSilence(`site=${site}`, undefined, 4_000);
    await post({ ts: at(), payload: { load: 0.95 } }, token);
    await expect.poll(() => listAlerts(`selector=site=${site}`), SOON).toMatchObject([{ silenced: true }]);
    expect(await eventsOf(apId)).toEqual(["agent.online"]);
    await expect.poll(() => eventsOf(apId), SOON).toEqual(["agent.online", "alert.fired"]);
    expect(await listAlerts(`selector=site=${site}`)).toMatchObject([{ silenced: false }]);
  });

  it("leaves no event of an alert that ends while it lasts", async () => {
    const site = uniqueName();
    const { apId, token } = await newAgent({}, { site });
    await ruleFor(site, HIGH);
    const { id } = await createSilence(`site=${site}`);
    await post({ ts: at(-10), payload: { load: 0.95 } }, token);
    await post({ ts: at(), payload: { load: 0.1 } }, token);
    await expect.poll(() => listAlerts(`state=resolved&selector=site=${site}`), SOON).toHaveLength(1);
    await send("DELETE", `/api/v1/alerts/silences/${id}`, undefined, await adminToken());
    expect(await eventsOf(apId)).toEqual(["agent.online"]);
  });
});

describe("a site whose access points stop to report", () => {
  it("gives one alert, not one for each access point", async () => {
    const site = uniqueName();
    const agents = await Promise.all(Array.from({ length: 6 }, () => newAgent({}, { site })));
    await ruleFor(site, {
      condition: { no_report_s: 3 },
      group: { by: "site", percent: 50 },
      text: "{{value}} % of {{group}}",
    });
    for (const { token } of agents) await post({ payload: { load: 0.5 } }, token);
    const all = () => listAlerts(`state=all&selector=site=${site}`);
    await expect.poll(all, SOON).toHaveLength(1);
    expect(await all()).toMatchObject([{ ap_id: null, group: site, labels: { site }, state: "firing" }]);
    for (const { token } of agents.slice(0, 5)) await post({ payload: { load: 0.5 } }, token);
    // They stop to report again, so on a slow machine the next alert may already fire.
    const ended = async () => (await all()).filter(({ state }) => state === "resolved").length;
    await expect.poll(ended, SOON).toBeGreaterThanOrEqual(1);
  });
});
