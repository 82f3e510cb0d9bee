import { expect } from "vitest";
import type { StoredGrant } from "../../../src/accounts/account-tables.ts";
import { SERVICE_LABELS } from "../../../src/lib/selectors.ts";
import { adminToken, bearer, newAgent, request, send, signedUp, uniqueName } from "../support.ts";

export const putLabels = (apId: string, labels: object, token: string): Promise<Response> =>
  send("PUT", `/api/v1/agents/${apId}/labels`, labels, token);

export const postLabels = (body: object, token: string): Promise<Response> =>
  send("POST", "/api/v1/labels", body, token);

export const postCsv = (text: string, token: string, query = "", type = "text/csv"): Promise<Response> =>
  request(`/api/v1/labels/import${query}`, {
    method: "POST",
    headers: { "Content-Type": type, ...bearer(token) },
    body: text,
  });

/** Returns the labels that callers have set on an agent. A request without changes returns all labels. */
export async function labelsOf(apId: string): Promise<Record<string, string>> {
  const response = await putLabels(apId, {}, await adminToken());
  expect(response.status).toBe(200);
  const { labels } = (await response.json()) as { labels: Record<string, string> };
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !SERVICE_LABELS.includes(key)));
}

/** Creates agents with labels, and returns their names in the same order. */
export const newAgents = async (...labels: Record<string, string>[]): Promise<string[]> =>
  await Promise.all(labels.map(async (one) => (await newAgent({}, one)).apId));

export const newManager = async (selector: string, ...others: StoredGrant[]): Promise<string> =>
  (await signedUp([{ role: "manager", selector }, ...others])).token;

/** A value of a label that only the agents of one test have. */
export const newSite = (): string => uniqueName();

export interface Item {
  loc: (string | number)[];
  msg: string;
  type: string;
}

export async function itemsOf(response: Response): Promise<Item[]> {
  expect(response.status).toBe(422);
  return ((await response.json()) as { detail: Item[] }).detail;
}
