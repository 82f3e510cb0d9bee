import { like } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { alertRules } from "../../../src/alerts/alert-tables.ts";
import { RuleSpec } from "../../../src/schemas/alerts/rule.ts";
import { type AlertRule, MAX_RULES } from "../../../src/schemas/alerts/saved-rule.ts";
import { adminToken, newAgent, send, signedUp, uniqueName } from "../support.ts";
import {
  acknowledge,
  BASE,
  createRule,
  createSilence,
  database,
  deleteRule,
  eventsOfAlert,
  listAlerts,
  newAlert,
} from "./requests.ts";

const SPEC = { condition: { metric: "load", op: ">", value: 0.9 } };
const rules = async (): Promise<AlertRule[]> =>
  (await (await send("GET", `${BASE}/rules`, undefined, await adminToken())).json()) as AlertRule[];

describe("alert rules", () => {
  it("are predefined for 5G, WiFi and LiFi, and disabled", async () => {
    const predefined = (await rules()).filter(({ created_by }) => created_by === "service");
    expect(predefined).toHaveLength(14);
    expect(predefined.every(({ enabled }) => !enabled)).toBe(true);
    // What the migration inserts is what the API would store.
    for (const { spec } of predefined) expect(RuleSpec.parse(spec)).toEqual(spec);
  });

  it("are created, read, replaced and deleted, with an entry of the audit trail each", async () => {
    const { id, name, spec, enabled, version } = await createRule(SPEC, false);
    expect([enabled, version, spec.severity, spec.for_s]).toEqual([false, 1, "warning", 0]);
    const token = await adminToken();
    const changed = { name: `${name}-2`, enabled: false, spec: { ...spec, for_s: 60 } };
    const replaced = await send("PUT", `${BASE}/rules/${id}`, changed, token);
    expect(await replaced.json()).toMatchObject({ id, name: changed.name, version: 2, spec: { for_s: 60 } });
    await deleteRule(id);
    expect((await send("GET", `${BASE}/rules/${id}`, undefined, token)).status).toBe(404);
    const trail = async (object: string) => {
      const entries = await send("GET", `/api/v1/audit/?object=${object}`, undefined, token);
      return ((await entries.json()) as { action: string }[]).map(({ action }) => action);
    };
    expect([await trail(`alert_rule:${name}`), await trail(`alert_rule:${name}-2`)]).toEqual([
      ["create"],
      ["delete", "change"],
    ]);
  });

  it("have unique names, refer to groups that exist, and have bounded conditions", async () => {
    const token = await adminToken();
    const { id, name } = await createRule(SPEC, false);
    const post = async (body: object) => (await send("POST", `${BASE}/rules`, body, token)).status;
    expect(await post({ name, spec: SPEC })).toBe(409);
    expect(await post({ name: uniqueName(), spec: { ...SPEC, selector: "@nothing-like-it" } })).toBe(422);
    expect(await post({ name: uniqueName(), spec: { condition: { any: [] } } })).toBe(422);
    expect(await post({ name: "", spec: SPEC })).toBe(422);
    await deleteRule(id);
  });

  it("are limited in number", async () => {
    const prefix = uniqueName();
    const count = MAX_RULES - (await rules()).length;
    const row = (i: number) => ({ id: `${prefix}-${i}`, name: `${prefix}-${i}`, spec: RuleSpec.parse(SPEC) });
    const others = { isEnabled: false, version: 1, createdBy: "", updatedAt: new Date() };
    await database.insert(alertRules).values(Array.from({ length: count }, (_, i) => ({ ...row(i), ...others })));
    const response = await send("POST", `${BASE}/rules`, { name: uniqueName(), spec: SPEC }, await adminToken());
    expect(response.status).toBe(409);
    await database.delete(alertRules).where(like(alertRules.id, `${prefix}-%`));
  });
});

describe("alerts", () => {
  it("are listed by state, severity and selector, page by page", async () => {
    const team = uniqueName();
    const at = (s: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, s));
    const ruleLabels = { team };
    const first = await newAlert({ ruleLabels, firedAt: at(1), severity: "critical" });
    const second = await newAlert({ ruleLabels, firedAt: at(1) });
    const third = await newAlert({ ruleLabels, firedAt: at(2), resolvedAt: at(3) });
    const ids = async (query: string) => (await listAlerts(`selector=team=${team}&${query}`)).map(({ id }) => id);
    const ofOneTime = [first, second].toSorted().toReversed();
    expect(await ids("")).toEqual(ofOneTime);
    expect(await ids("state=resolved")).toEqual([third]);
    expect(await ids("state=all")).toEqual([third, ...ofOneTime]);
    expect(await ids("severity=critical")).toEqual([first]);
    expect(await ids("state=all&limit=1")).toEqual([third]);
    expect(await ids(`state=all&limit=1&before=${third}`)).toEqual(ofOneTime.slice(0, 1));
    expect(await ids(`state=all&before=${ofOneTime[0]}`)).toEqual(ofOneTime.slice(1));
  });

  it("are those in the caller's scope, and only operators acknowledge them", async () => {
    const site = uniqueName();
    const { apId } = await newAgent({}, { site });
    const id = await newAlert({ apId, labels: { site } });
    const hidden = await newAlert({ apId: uniqueName(), labels: { site: uniqueName() }, ruleLabels: { site } });
    const ofGroup = await newAlert({ groupValue: site, labels: { site } });
    const as = async (role: "viewer" | "operator") => (await signedUp([{ role, selector: `site=${site}` }])).token;
    const [viewer, operator] = [await as("viewer"), await as("operator")];
    const seen = (await listAlerts("", viewer)).map((alert) => alert.id);
    expect(seen.toSorted()).toEqual([id, ofGroup].toSorted());
    const statusOf = async (alert: string, token: string) => (await acknowledge(alert, token)).status;
    expect([await statusOf(id, viewer), await statusOf(hidden, viewer)]).toEqual([403, 404]);
    expect([await statusOf(hidden, operator), await statusOf(uniqueName(), operator)]).toEqual([404, 404]);
    const response = await acknowledge(id, operator);
    const { acknowledged_by } = (await response.json()) as { acknowledged_by: string };
    expect(acknowledged_by).toMatch(/^user:/);
    // The first one counts.
    expect(await (await acknowledge(id, await adminToken())).json()).toMatchObject({ acknowledged_by });
    expect(await eventsOfAlert(id)).toEqual(["alert.acknowledged"]);
  });
});

describe("silences", () => {
  it("end within 90 days, and are listed until then", async () => {
    const token = await adminToken();
    const post = async (ms: number) => {
      const until = new Date(Date.now() + ms).toISOString();
      return (await send("POST", `${BASE}/silences`, { selector: "site=x", until }, token)).status;
    };
    expect([await post(-1_000), await post(91 * 86_400_000)]).toEqual([422, 422]);
    const { id } = await createSilence(`site=${uniqueName()}`);
    const list = async () => {
      const response = await send("GET", `${BASE}/silences`, undefined, token);
      return ((await response.json()) as { id: string }[]).map((silence) => silence.id);
    };
    expect(await list()).toContain(id);
    expect((await send("DELETE", `${BASE}/silences/${id}`, undefined, token)).status).toBe(200);
    expect(await list()).not.toContain(id);
    expect((await send("DELETE", `${BASE}/silences/${id}`, undefined, token)).status).toBe(404);
  });

  it("are seen and ended by their authors and by those who see all agents", async () => {
    const as = async (role: "viewer" | "operator") => (await signedUp([{ role, selector: "site=x" }])).token;
    const [author, other, viewer] = [await as("operator"), await as("operator"), await as("viewer")];
    const { id } = await createSilence("site=x", author);
    const end = async (token: string) => (await send("DELETE", `${BASE}/silences/${id}`, undefined, token)).status;
    const count = async (token: string) =>
      ((await (await send("GET", `${BASE}/silences`, undefined, token)).json()) as { id: string }[]).filter(
        (silence) => silence.id === id,
      ).length;
    expect([await count(author), await count(other), await count(await adminToken())]).toEqual([1, 0, 1]);
    expect([await end(other), await end(viewer), await end(author)]).toEqual([404, 403, 200]);
    const until = new Date(Date.now() + 60_000).toISOString();
    expect((await send("POST", `${BASE}/silences`, { selector: "", until }, viewer)).status).toBe(403);
  });
});
