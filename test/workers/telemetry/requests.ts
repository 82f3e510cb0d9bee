import { expect } from "vitest";
import { send } from "../support.ts";

interface Point {
  ts: string;
  value: number | string;
}
export interface Series {
  metric: string;
  bucket_ms?: number;
  points: Point[];
}

export const post = (body: unknown, token: string) => send("POST", "/api/v1/agent_update/update", body, token);
export const get = async (path: string, token: string) =>
  await send("GET", `/api/v1/metrics/${path}`, undefined, token);
export const data = async (apId: string, token: string, query = "") => {
  const response = await get(`agent_data?agent=${apId}${query}`, token);
  expect(response.status).toBe(200);
  return (await response.json()) as { key: string; agent_id: string; window_minutes: number; series: Series[] };
};
export const multi = async (apId: string, token: string, metrics: string, query = "") => {
  const response = await get(`agent_multi_metric_data?agent=${apId}&metrics=${metrics}${query}`, token);
  expect(response.status).toBe(200);
  return (await response.json()) as { agent_id: string; window_minutes: number; series: Series[] };
};
export const values = (series: Series[]) =>
  Object.fromEntries(series.map(({ metric, points }) => [metric, points.map(({ value }) => value)]));
export const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
