import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findPeerPrograms, type Peer, startPeer } from "../../../scripts/harness/bench/peer/peer.ts";
import { callbackPath, closeSockets, openSocket, streamPath } from "../../../scripts/harness/job-socket.ts";
import { until } from "../../../scripts/harness/product.ts";
import { UPDATE_PATH } from "../../../scripts/harness/telemetry-oracle.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { TokenData } from "../../../src/schemas/accounts/user.ts";
import { CallbackResponse } from "../../../src/schemas/job.ts";
import { MultiMetricData } from "../../../src/schemas/metrics.ts";
import { ReportResponse } from "../../../src/schemas/telemetry.ts";

const { python, missing } = await findPeerPrograms();

it("names every package that is missing", async () => {
  const found = await findPeerPrograms(["/nonexistent/python3"], "/nonexistent/influxd");
  expect(found.missing).toContain("influxdb");
  expect(found.missing).toContain("python3-fastapi");
});

describe.skipIf(missing.length > 0)("the Python service of the bench", () => {
  const supervisor = new Supervisor();
  const folder = mkdtempSync(join(tmpdir(), "peer-"));
  let peer: Peer;

  beforeAll(async () => {
    peer = await startPeer({ python, supervisor, folder, agents: 1 });
  });

  afterAll(async () => {
    await supervisor.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("returns the calling user, and rejects a request without a token with 401", async () => {
    const { client, userToken: token } = peer;
    expect(TokenData.parse(await client.call("/api/v1/users/me", { token }))).toMatchObject({ roles: "user" });
    expect((await client.request("/api/v1/users/me")).status).toBe(401);
  });

  it("stores a report and returns it in a chart", async () => {
    const [agent] = peer.agents;
    const token = agent?.token;
    const ts = Date.now();
    const report = ReportResponse.parse(
      await peer.client.call(UPDATE_PATH, { token, body: { ts, payload: { a: 1, "b c": 2.5 } } }),
    );
    expect(report.accepted).toBe(2);
    await until(async () => (await peer.countPoints("a")) === 1);
    const path = "/api/v1/metrics/agent_multi_metric_data?agent=peer-0&metrics=a,b%20c&window=5m";
    const { series } = MultiMetricData.parse(await peer.client.call(path, { token }));
    expect(series.map(({ metric, points }) => [metric, points.map((point) => point.value)])).toEqual([
      ["a", [1]],
      ["b c", [2.5]],
    ]);
    expect(Date.parse(series[0]?.points[0]?.ts ?? "")).toBe(ts);
  });

  it("sends callbacks to the job's socket in order, also those from before it connected", async () => {
    const { client, url, userToken: token } = peer;
    const post = async (n: number) =>
      CallbackResponse.parse(await client.call(callbackPath("j"), { token, body: [n] }));
    expect(await post(1)).toMatchObject({ seq: 1, queued: true });
    const data: unknown[] = [];
    const onText = (text: string) => void data.push(JSON.parse(text).data);
    const socket = await openSocket({ url, path: streamPath("j"), token, onText });
    await until(() => data.length === 1);
    expect(await post(2)).toMatchObject({ seq: 2, delivered: 1, queued: false });
    await until(() => data.length === 2);
    expect(data).toEqual([[1], [2]]);
    closeSockets([socket]);
  });
});
