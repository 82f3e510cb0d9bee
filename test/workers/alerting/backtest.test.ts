import { describe, expect, it } from "vitest";
import type { Backtest } from "../../../src/schemas/alerts/backtest.ts";
import { adminToken, appWith, bearer, newAgent, newApp, send, signedUp, testStore, uniqueName } from "../support.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const startMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 3 * HOUR_MS;
const endMs = startMs + HOUR_MS;
const at = (minute: number): string => new Date(startMs + minute * MINUTE_MS).toISOString();

const request = async (body: object, token: string): Promise<Response> =>
  await send("POST", "/api/v1/alerts/rules/test", { from: startMs, to: endMs, ...body }, token);
const test = async (body: object, token: string): Promise<Backtest> => {
  const response = await request(body, token);
  expect(response.status, await response.clone().text()).toBe(200);
  return (await response.json()) as Backtest;
};

/** Stores a value of `load` per minute, and returns when the service knows the labels of the agents. */
async function newNetwork(agents: { site: string; loads: (number | null)[] }[]) {
  const team = uniqueName();
  const apIds: string[] = [];
  for (const { site, loads } of agents) {
    const { apId } = await newAgent({}, { team, site });
    apIds.push(apId);
    const samples = loads.flatMap((load, minute) =>
      load === null ? [] : [{ apId, tsMs: startMs + minute * MINUTE_MS, metrics: { load }, texts: {} }],
    );
    await testStore().insert(samples, uniqueName());
  }
  const selector = `team=${team}`;
  const count = async () =>
    (await test({ rule: { selector, condition: { no_report_s: 60 } }, limit: 0 }, await adminToken())).agents;
  await expect.poll(count, { timeout: 10_000, interval: 300 }).toBe(agents.length);
  return { selector, apIds };
}

const HIGH = { metric: "load", op: ">", value: 0.9 };

describe("POST /api/v1/alerts/rules/test", () => {
  it("returns the alerts that a rule would have sent, from samples and from minutes", async () => {
    const { selector, apIds } = await newNetwork([
      { site: "a", loads: [0.5, 0.95, 0.96, 0.97, 0.5, 0.5, 0.99, 0.5] },
      { site: "b", loads: [0.1, 0.1, 0.1, 1, 1, 1] },
    ]);
    const rule = {
      selector,
      condition: HIGH,
      for_s: 90,
      severity: "critical",
      text: "{{ap_id}} at {{site}}: {{value}}",
    };
    for (const resolution of ["samples", "minutes"] as const) {
      const { alerts, ...rest } = await test({ rule, resolution }, (await signedUp()).token);
      expect(rest).toEqual({
        from: at(0),
        to: at(60),
        resolution,
        agents: 2,
        total: 2,
        flaps: { total: 0, most: [] },
        truncated: false,
      });
      expect(alerts).toEqual([
        {
          ap_id: apIds[0],
          group: null,
          fired_at: at(2.5),
          resolved_at: at(4),
          duration_s: 90,
          value: 0.96,
          text: `${apIds[0]} at a: 0.96`,
        },
        {
          ap_id: apIds[1],
          group: null,
          fired_at: at(4.5),
          resolved_at: null,
          duration_s: 55.5 * 60,
          value: 1,
          text: `${apIds[1]} at b: 1`,
        },
      ]);
    }
  });

  it("counts how often a rule would have flapped, and that tolerance prevents it", async () => {
    const swinging = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? 0.95 : 0.85));
    const { selector, apIds } = await newNetwork([
      { site: "a", loads: [...swinging, 0.5] },
      { site: "a", loads: [1, 0.5, ...Array<null>(20).fill(null), 1] },
    ]);
    const eager = await test({ rule: { selector, condition: HIGH }, limit: 3 }, await adminToken());
    expect(eager).toMatchObject({
      total: 22,
      flaps: { total: 19, most: [{ ap_id: apIds[0], group: null, flaps: 19 }] },
    });
    expect(eager.alerts).toHaveLength(3);
    const clear = { condition: { metric: "load", op: "<", value: 0.8 }, for_s: 60 };
    const tolerant = await test({ rule: { selector, condition: HIGH, for_s: 30, clear } }, await adminToken());
    expect(tolerant).toMatchObject({ total: 3, flaps: { total: 0, most: [] } });
  });

  it("gives one alert for a dead site", async () => {
    const alive = Array.from({ length: 60 }, () => 0.1);
    const { selector } = await newNetwork([
      { site: "dead", loads: alive.slice(0, 10) },
      { site: "dead", loads: alive.slice(0, 12) },
      { site: "dead", loads: [...alive.slice(0, 14), ...Array<null>(16).fill(null), ...alive.slice(0, 30)] },
      { site: "dead", loads: alive },
      { site: "alive", loads: alive },
      { site: "alive", loads: alive.slice(0, 10) },
    ]);
    const group = { by: "site", percent: 60 };
    const rule = { selector, condition: { no_report_s: 180 }, group, text: "{{value}} % of {{group}} = {{site}}" };
    const { alerts, total } = await test({ rule }, await adminToken());
    expect(total).toBe(1);
    expect(alerts).toEqual([
      {
        ap_id: null,
        group: "dead",
        fired_at: at(16),
        resolved_at: at(30),
        duration_s: 14 * 60,
        value: 75,
        text: "75 % of dead = dead",
      },
    ]);
  });

  it("evaluates only the agents that the caller sees", async () => {
    const { selector, apIds } = await newNetwork([
      { site: "in/1", loads: [1] },
      { site: "out", loads: [1] },
    ]);
    const { token: viewer } = await signedUp([{ role: "viewer", selector: `${selector},site=in/*` }]);
    const { token: app } = await newApp({ ap_ids: [apIds[0]] });
    for (const token of [viewer, app]) {
      for (const rule of [{ condition: HIGH }, { condition: HIGH, group: { by: "team", percent: 50 } }]) {
        const result = await test({ rule }, token);
        expect(result).toMatchObject({ agents: 1, total: 1 });
        expect(JSON.stringify(result)).not.toContain(apIds[1]);
      }
      expect(await test({ rule: { selector: `${selector},site=out`, condition: HIGH } }, token)).toMatchObject({
        agents: 0,
        alerts: [],
      });
    }
    expect(await test({ rule: { condition: HIGH } }, (await signedUp([])).token)).toMatchObject({
      agents: 0,
      total: 0,
    });
  });

  it("rejects wrong rules and periods with 422", async () => {
    const token = await adminToken();
    const wrong = [
      { rule: { condition: HIGH }, from: endMs, to: startMs },
      { rule: { condition: HIGH }, from: endMs - 32 * 24 * HOUR_MS, resolution: "samples" },
      { rule: { condition: HIGH }, from: endMs - 401 * 24 * HOUR_MS },
      { rule: { condition: HIGH, selector: "a=" } },
      { rule: { condition: { metric: "load", op: "=", value: 1 } } },
      { rule: { condition: { any: [] } } },
      { rule: { condition: { all: [{ all: [{ all: [{ all: [HIGH] }] }] }] } } },
      { rule: { condition: { metric: "\ud800", op: ">", value: 1 } } },
      { rule: { condition: HIGH, text: "\ud800" } },
    ];
    for (const body of wrong) expect([body, (await request(body, token)).status]).toEqual([body, 422]);
    const unknown = await request({ rule: { condition: HIGH, selector: `@${uniqueName()}` } }, token);
    expect(await unknown.json()).toMatchObject({
      detail: [{ loc: ["body", "rule", "selector"], type: "unknown_group" }],
    });
  });

  it("responds with 503 if the store does not respond", async () => {
    await newNetwork([{ site: "a", loads: [1] }]);
    const app = appWith({ CLICKHOUSE_URL: "http://127.0.0.1:9" });
    const response = await app.request("https://controller.test/api/v1/alerts/rules/test", {
      method: "POST",
      headers: { ...bearer(await adminToken()), "Content-Type": "application/json" },
      body: JSON.stringify({ rule: { condition: HIGH }, from: startMs, to: endMs }),
    });
    expect(response.status).toBe(503);
    expect(response.headers.get("Retry-After")).toBe("2");
  });
});
