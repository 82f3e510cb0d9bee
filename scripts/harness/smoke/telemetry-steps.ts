import type { ApiClient } from "../client.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import type { Callers } from "./account-steps.ts";
import { eventually, expectEqual, expectThat } from "./steps.ts";

/** What an agent reports, and what others then read. */

interface Stored {
  accepted: number;
  rejected: { field: string }[];
}

interface Series {
  metric: string;
  points: { ts: string; value: number | string }[];
}

export interface Point {
  tsMs: number;
  value: number;
}

interface Details {
  ap_id: string;
  configuration: unknown;
  onboard: boolean;
}

const ONBOARD_S = 10;
const SAMPLES_PER_CALL = 1_000;

export const chartPath = (apId: string, metrics: string): string =>
  `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${metrics}`;

export const pointsFrom = (startMs: number, stepMs: number, count: number): Point[] =>
  Array.from({ length: count }, (_, i) => ({ tsMs: startMs + i * stepMs, value: i / 7 }));

/** Reports a configuration. The app, whose permissions name this agent only, sees no other agent. */
export async function checkOnboarding(client: ApiClient, { agent, app, apId }: Callers): Promise<void> {
  const configuration = { access_point_type: "WiFi", interval: 5 };
  const body = { configuration, geolocation: { lat: "51.4545", lon: -2.5879 } };
  await client.call(UPDATE_PATH, { token: agent, body });
  // The service records that an agent is on board only after it has responded to the login.
  const known = await eventually("The agent to be on board", ONBOARD_S, async () => {
    const all = await client.call<Details[]>("/api/v1/metrics/agent_details", { token: app });
    const names = all.map(({ ap_id }) => ap_id);
    expectEqual("The agents that the app sees", names, [apId]);
    return all.find(({ onboard }) => onboard);
  });
  const geolocation = { latitude: 51.4545, longitude: -2.5879 };
  expectEqual("The agent's configuration", known.configuration, { ...configuration, geolocation });
}

export async function checkReport(client: ApiClient, { agent, user, apId }: Callers, nowMs: number): Promise<void> {
  const payload = { single: 0.1, radio: { on: true }, firmware: "smoke", list: [1] };
  const { accepted, rejected } = await client.call<Stored>(UPDATE_PATH, { token: agent, body: { ts: nowMs, payload } });
  expectEqual("The number of stored values", accepted, 3);
  const fields = rejected.map(({ field }) => field);
  expectEqual("The rejected fields", fields, ["list"]);
  const request = client.call<{ series: Series[] }>(`/api/v1/metrics/agent_data?agent=${apId}`, { token: user });
  const stored = Object.fromEntries((await request).series.map(({ metric, points }) => [metric, points]));
  const points = (value: number | string) => [{ ts: new Date(nowMs).toISOString(), value }];
  expectEqual("The stored values", stored, { firmware: points("smoke"), "radio.on": points(1), single: points(0.1) });
}

/** Sends samples of one metric in as many calls as necessary. */
export async function reportBatch(client: ApiClient, { agent }: Callers, metric: string, points: Point[]) {
  for (let from = 0; from < points.length; from += SAMPLES_PER_CALL) {
    const batch = points.slice(from, from + SAMPLES_PER_CALL);
    const samples = batch.map(({ tsMs, value }) => ({ ts: tsMs, payload: { [metric]: value } }));
    const { accepted } = await client.call<Stored>(UPDATE_PATH, { token: agent, body: { samples } });
    expectEqual("The number of stored values of a batch", accepted, samples.length);
  }
}

export async function checkSeries(client: ApiClient, { user, app, apId }: Callers, metric: string, points: Point[]) {
  const expected: Series[] = [
    { metric, points: points.map(({ tsMs, value }) => ({ ts: new Date(tsMs).toISOString(), value })) },
    { metric: "nothing", points: [] },
  ];
  for (const token of [user, app]) {
    const path = `${chartPath(apId, `${metric},nothing`)}&window=5m`;
    const { series } = await client.call<{ series: Series[] }>(path, { token });
    expectEqual("The series", series, expected);
  }
  const path = `/api/v1/metrics/agent_metrics?agent=${apId}`;
  const { metrics } = await client.call<{ metrics: { name: string }[] }>(path, { token: user });
  const isListed = metrics.some(({ name }) => name === metric);
  expectThat(isListed, `${metric} is not among the agent's metrics`);
}
