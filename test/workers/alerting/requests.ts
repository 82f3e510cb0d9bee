import { asc, eq } from "drizzle-orm";
import { expect } from "vitest";
import { alerts } from "../../../src/alerts/alert-tables.ts";
import { events } from "../../../src/events/event-tables.ts";
import type { Alert, Silence } from "../../../src/schemas/alerts/alert.ts";
import type { AlertRule } from "../../../src/schemas/alerts/saved-rule.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, send, settings, uniqueName } from "../support.ts";

export const database = createDatabase({ url: settings.LIBSQL_URL ?? "" });

export const BASE = "/api/v1/alerts";

const json = async <T>(response: Response): Promise<T> => {
  expect(response.status, await response.clone().text()).toBe(200);
  return (await response.json()) as T;
};

/** Creates a rule as an administrator. */
export const createRule = async (spec: object, enabled = true): Promise<AlertRule> =>
  await json(await send("POST", `${BASE}/rules`, { name: uniqueName(), enabled, spec }, await adminToken()));

export const deleteRule = async (id: string) =>
  expect((await send("DELETE", `${BASE}/rules/${id}`, undefined, await adminToken())).status).toBe(200);

export const listAlerts = async (query: string, token?: string): Promise<Alert[]> =>
  await json(await send("GET", `${BASE}?${query}`, undefined, token ?? (await adminToken())));

export const createSilence = async (selector: string, token?: string, forMs = 60_000): Promise<Silence> => {
  const until = new Date(Date.now() + forMs).toISOString();
  const body = { selector, until, reason: "maintenance" };
  return await json(await send("POST", `${BASE}/silences`, body, token ?? (await adminToken())));
};

export const acknowledge = async (id: string, token: string): Promise<Response> =>
  await send("POST", `${BASE}/${id}/acknowledge`, undefined, token);

/** Returns the types of the events about an agent, in their order, without those of its registration. */
export const eventsOf = async (apId: string): Promise<string[]> => {
  const rows = await database.select().from(events).where(eq(events.apId, apId)).orderBy(asc(events.id));
  return rows.map(({ type }) => type).filter((type) => /^alert|line$/.test(type));
};

/** Returns the types of the events of one alert. */
export const eventsOfAlert = async (alertId: string): Promise<string[]> => {
  const rows = await database.select().from(events).orderBy(asc(events.id));
  return rows.filter(({ data }) => data.alert_id === alertId).map(({ type }) => type);
};

/** Inserts an alert that fires. */
export async function newAlert(values: Partial<typeof alerts.$inferInsert> = {}): Promise<string> {
  const id = uniqueName();
  const base = { id, ruleId: id, rule: "r", severity: "warning" as const, labels: {}, ruleLabels: {}, text: "" };
  await database.insert(alerts).values({ ...base, firedAt: new Date(), ...values });
  return id;
}
