import type { Api } from "../api.ts";
import type { Callers } from "./account-steps.ts";
import { eventually, expectEqual, expectThat } from "./steps.ts";

/** What an agent says of itself, and what others then read. */

interface Stored {
  accepted: number;
  rejected: { field: string }[];
}

interface Series {
  metric: string;
  points: { ts: string; value: number | string }[];
}

const UPDATE = "/api/v1/agent_update/update";
const ONBOARD_S = 10;

interface Details {
  ap_id: string;
  configuration: unknown;
  onboard: boolean;
}

/** The app, which may know of this agent only, sees just that. */
export async function onboards(api: Api, { agent, app, apId }: Callers): Promise<void> {
  const configuration = { access_point_type: "WiFi", interval: 5 };
  await api.call("POST", UPDATE, agent, { configuration, geolocation: { lat: "51.4545", lon: -2.5879 } });
  // That an agent is on board is noted when its login is answered already.
  const known = await eventually("The agent to be on board", ONBOARD_S, async () => {
    const all = await api.call<Details[]>("GET", "/api/v1/metrics/agent_details", app);
    expectEqual(
      "The agents that the app sees",
      all.map(({ ap_id }) => ap_id),
      [apId],
    );
    return all.find(({ onboard }) => onboard);
  });
  expectEqual("The agent's configuration", known.configuration, {
    ...configuration,
    geolocation: { latitude: 51.4545, longitude: -2.5879 },
  });
}

export async function reportsOnce(api: Api, { agent, user, apId }: Callers, nowMs: number): Promise<void> {
  const payload = { single: 0.1, radio: { on: true }, firmware: "smoke", list: [1] };
  const { accepted, rejected } = await api.call<Stored>("POST", UPDATE, agent, { ts: nowMs, payload });
  expectEqual("Values stored", accepted, 3);
  expectEqual(
    "Values refused",
    rejected.map(({ field }) => field),
    ["list"],
  );
  const { series } = await api.call<{ series: Series[] }>("GET", `/api/v1/metrics/agent_data?agent=${apId}`, user);
  const points = (value: number | string) => [{ ts: new Date(nowMs).toISOString(), value }];
  expectEqual(
    "What was stored",
    new Map(series.map(({ metric, points }) => [metric, points])),
    new Map([
      ["firmware", points("smoke")],
      ["radio.on", points(1)],
      ["single", points(0.1)],
    ]),
  );
}

/** Samples of one metric, in as many calls as it takes. */
export async function reportsBatch(api: Api, { agent }: Callers, metric: string, points: Point[]): Promise<void> {
  for (let from = 0; from < points.length; from += SAMPLES_PER_CALL) {
    const samples = points
      .slice(from, from + SAMPLES_PER_CALL)
      .map(({ tsMs, value }) => ({ ts: tsMs, payload: { [metric]: value } }));
    const { accepted } = await api.call<Stored>("POST", UPDATE, agent, { samples });
    expectEqual("Values stored of a batch", accepted, samples.length);
  }
}

const SAMPLES_PER_CALL = 1_000;

export interface Point {
  tsMs: number;
  value: number;
}

export const pointsFrom = (startMs: number, stepMs: number, count: number): Point[] =>
  Array.from({ length: count }, (_, i) => ({ tsMs: startMs + i * stepMs, value: i / 7 }));

export async function readsBack(
  api: Api,
  { user, app, apId }: Callers,
  metric: string,
  points: Point[],
): Promise<void> {
  const path = `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${metric},nothing&window=5m`;
  const expected: Series[] = [
    { metric, points: points.map(({ tsMs, value }) => ({ ts: new Date(tsMs).toISOString(), value })) },
    { metric: "nothing", points: [] },
  ];
  for (const token of [user, app]) {
    const { series } = await api.call<{ series: Series[] }>("GET", path, token);
    expectEqual("What is read back", series, expected);
  }
  const { metrics } = await api.call<{ metrics: { name: string }[] }>(
    "GET",
    `/api/v1/metrics/agent_metrics?agent=${apId}`,
    user,
  );
  expectThat(
    metrics.some(({ name }) => name === metric),
    `${metric} is not among the agent's metrics`,
  );
}
