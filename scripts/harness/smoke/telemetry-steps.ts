import { type Envelope, historyPath, openReader, type Queued } from "../job-socket.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import { eventually, expectEqual, expectThat, type SmokeContext } from "./steps.ts";

/** What an agent reports, and what others then read. */

interface Stored {
  accepted: number;
  rejected: { field: string }[];
}

export interface Series {
  metric: string;
  points: { ts: string; value: number | string }[];
}

type Details = { ap_id: string; configuration: unknown; onboard: boolean }[];

const ONBOARD_S = 10;
const SAMPLES_PER_CALL = 1_000;
const RECENT_POINTS = 120;
/** More than fits into one message of a stream. */
const HISTORY_POINTS = 6_000;
const HOUR_MS = 3_600_000;

export const chartPath = (apId: string, metrics: string): string =>
  `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${metrics}`;

/** Reports a configuration. The app, whose permissions name this agent only, sees no other agent. */
export async function checkOnboarding({ client, agent, app, name }: SmokeContext): Promise<void> {
  const configuration = { access_point_type: "WiFi", interval: 5 };
  const body = { configuration, geolocation: { lat: "51.4545", lon: -2.5879 } };
  await client.call(UPDATE_PATH, { token: agent, body });
  // The service records that an agent is on board only after it has responded to the login.
  const known = await eventually("The agent to be on board", ONBOARD_S, async () => {
    const all = await client.call<Details>("/api/v1/metrics/agent_details", { token: app });
    const names = all.map(({ ap_id }) => ap_id);
    expectEqual("The agents that the app sees", names, [name]);
    return all.find(({ onboard }) => onboard);
  });
  const geolocation = { latitude: 51.4545, longitude: -2.5879 };
  expectEqual("The agent's configuration", known.configuration, { ...configuration, geolocation });
}

export async function checkReport({ client, agent, user, name }: SmokeContext): Promise<void> {
  const nowMs = Date.now();
  const payload = { single: 0.1, radio: { on: true }, firmware: "smoke", list: [1] };
  const { accepted, rejected } = await client.call<Stored>(UPDATE_PATH, { token: agent, body: { ts: nowMs, payload } });
  expectEqual("The number of stored values", accepted, 3);
  const fields = rejected.map(({ field }) => field);
  expectEqual("The rejected fields", fields, ["list"]);
  const request = client.call<{ series: Series[] }>(`/api/v1/metrics/agent_data?agent=${name}`, { token: user });
  const stored = Object.fromEntries((await request).series.map(({ metric, points }) => [metric, points]));
  const points = (value: number | string) => [{ ts: new Date(nowMs).toISOString(), value }];
  expectEqual("The stored values", stored, { firmware: points("smoke"), "radio.on": points(1), single: points(0.1) });
}

/** Reports samples of one metric in as many calls as necessary. */
async function reportPoints(context: SmokeContext, metric: string, fromMs: number, stepMs: number, count: number) {
  const { client, agent } = context;
  const at = (i: number): string => new Date(fromMs + i * stepMs).toISOString();
  const points = Array.from({ length: count }, (_, i) => ({ ts: at(i), value: i / 7 }));
  for (let i = 0; i < count; i += SAMPLES_PER_CALL) {
    const batch = points.slice(i, i + SAMPLES_PER_CALL);
    const samples = batch.map(({ ts, value }) => ({ ts, payload: { [metric]: value } }));
    const { accepted } = await client.call<Stored>(UPDATE_PATH, { token: agent, body: { samples } });
    expectEqual("The number of stored values of a batch", accepted, samples.length);
  }
  return points;
}

/** Reports a batch, which the user and the app read. */
export async function checkSeries(context: SmokeContext): Promise<void> {
  const { client, user, app, name } = context;
  const points = await reportPoints(context, "recent", Date.now() - RECENT_POINTS * 1_000, 1_000, RECENT_POINTS);
  const [recent, nothing] = [
    { metric: "recent", points },
    { metric: "nothing", points: [] },
  ];
  for (const token of [user, app]) {
    const path = `${chartPath(name, "recent,nothing")}&window=5m`;
    const { series } = await client.call<{ series: Series[] }>(path, { token });
    expectEqual("The series", series, [recent, nothing]);
  }
  const path = `/api/v1/metrics/agent_metrics?agent=${name}`;
  const { metrics } = await client.call<{ metrics: { name: string }[] }>(path, { token: user });
  const isListed = metrics.some(({ name }) => name === "recent");
  expectThat(isListed, "recent is not among the agent's metrics");
}

/** Reports a backlog, and reads it as a history over two connections: the second one resumes where the first one ended. */
export async function checkHistory(context: SmokeContext): Promise<void> {
  const { client, created, user, name } = context;
  const fromMs = Date.now() - HOUR_MS;
  const points = await reportPoints(context, "past", fromMs, 500, HISTORY_POINTS);
  const range = { apId: name, fromMs, toMs: fromMs + HISTORY_POINTS * 500 };
  const { job_number: job } = await client.call<Queued>(historyPath(range), { method: "POST", token: user });
  created.add(`/api/v1/jobs/${job}`);
  const messages: Envelope<unknown[]>[] = [];
  const rowsOf = () => messages.filter(({ type }) => type === "agent_data").flatMap(({ data }) => data);
  const readUntil = async (isDone: () => boolean): Promise<void> => {
    const reader = await openReader(client, user, job, messages.at(-1)?.seq);
    try {
      while (!isDone()) messages.push(await reader.next());
      reader.acknowledge(messages.at(-1)?.seq ?? 0);
    } finally {
      reader.close();
    }
  };
  await readUntil(() => rowsOf().length > 0);
  expectThat(messages.at(-1)?.final === false, "The whole history came in one message");
  await readUntil(() => messages.at(-1)?.final === true);
  const seqs = messages.map(({ seq }) => seq);
  const consecutive = messages.map((_, i) => i + 1);
  expectEqual("The sequence numbers", seqs, consecutive);
  const expected = points.map(({ ts, value }) => ({ time: ts, field: "past", value }));
  expectEqual("The rows of the history", rowsOf(), expected);
}
