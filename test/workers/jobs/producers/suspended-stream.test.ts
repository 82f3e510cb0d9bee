import { env, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { bearer, newAgent, request, send, signedUp, uniqueName } from "../../support.ts";
import { alarmOf, Client, movableClock } from "../job-support.ts";

const MINUTE_MS = 60_000;
const clock = movableClock();

describe("an unread live stream", () => {
  it("is suspended, stops polling its agent's shard, and delivers all missed rows when a reader connects", async () => {
    const [user, agent] = await Promise.all([signedUp(), newAgent()]);
    const report = async (value: number) => {
      const body = { payload: { value } };
      expect((await send("POST", "/api/v1/agent_update/update", body, agent.token)).status).toBe(200);
    };
    const query = new URLSearchParams({
      agent_id: agent.apId,
      start_time: new Date(Date.now() - MINUTE_MS).toISOString(),
      end_time: new Date(Date.now() + 30 * MINUTE_MS).toISOString(),
    });
    const path = `/api/v1/agent_data/request_agent_data?${query}`;
    const { job_number } = (await (await send("POST", path, undefined, user.token)).json()) as { job_number: string };
    const job = env.JOB_STREAM.getByName(job_number);
    const sentRows = async () => (await job.describe()).rows?.sent;
    const detail = async () =>
      ((await (await send("GET", `/api/v1/jobs/${job_number}`, undefined, user.token)).json()) as { detail: string })
        .detail;
    const eventually = expect.poll;

    await report(1);
    await eventually(sentRows, { timeout: 10_000 }).toBe(1);
    clock.forwardMs += 6 * MINUTE_MS;
    // Ends the wait for changes, so that the stream checks the time.
    await report(2);
    await eventually(detail, { timeout: 10_000 }).toBe("Suspended until a reader connects");
    await runDurableObjectAlarm(job);
    expect(await alarmOf(job)).toBeGreaterThan(Date.now() + 10 * MINUTE_MS);

    const before = await sentRows();
    clock.forwardMs += 2 * MINUTE_MS;
    await report(3);
    await report(4);
    await runDurableObjectAlarm(job);
    expect(await sentRows()).toBe(before);

    const headers = { Upgrade: "websocket", ...bearer(user.token) };
    const { webSocket } = await request(`/api/v1/ws/${job_number}`, { headers });
    if (webSocket === null) throw new Error("No socket");
    const client = new Client(webSocket);
    const values = () =>
      client.messages
        .filter(({ type }) => type === "agent_data")
        .flatMap(({ data }) => (data as { value: number }[]).map(({ value }) => value));
    await eventually(() => [...new Set(values())], { timeout: 10_000 }).toEqual([1, 2, 3, 4]);
    await report(5);
    await eventually(() => values().at(-1), { timeout: 10_000 }).toBe(5);
    expect(await detail()).toBe("");
    client.disconnect();
    expect((await send("DELETE", `/api/v1/jobs/${job_number}`, undefined, user.token)).status).toBe(200);
  });

  it("is suspended if it follows a selector, and continues with new rows when a reader connects", async () => {
    const team = uniqueName();
    const [user, agent] = await Promise.all([signedUp(), newAgent({}, { team })]);
    const report = async (value: number) => {
      const body = { payload: { value } };
      expect((await send("POST", "/api/v1/agent_update/update", body, agent.token)).status).toBe(200);
    };
    const path = `/api/v1/agent_data/request_live_data?selector=team=${team}&duration=3600`;
    const { job_number } = (await (await send("POST", path, undefined, user.token)).json()) as { job_number: string };
    const job = env.JOB_STREAM.getByName(job_number);
    const read = async () =>
      (await (await send("GET", `/api/v1/jobs/${job_number}`, undefined, user.token)).json()) as {
        detail: string;
        rows_sent: number;
        messages: number;
      };
    await expect.poll(async () => (await read()).messages, { timeout: 10_000 }).toBe(1);
    await report(1);
    await expect.poll(async () => (await read()).rows_sent, { timeout: 10_000 }).toBe(1);
    clock.forwardMs += 6 * MINUTE_MS;
    const suspended = "Suspended until a reader connects";
    await expect.poll(async () => (await read()).detail, { timeout: 10_000 }).toBe(suspended);
    await runDurableObjectAlarm(job);
    expect(await alarmOf(job)).toBeGreaterThan(Date.now() + 10 * MINUTE_MS);
    clock.forwardMs += 2 * MINUTE_MS;
    await report(2);

    const headers = { Upgrade: "websocket", ...bearer(user.token) };
    const { webSocket } = await request(`/api/v1/ws/${job_number}`, { headers });
    if (webSocket === null) throw new Error("No socket");
    const client = new Client(webSocket);
    await expect.poll(async () => (await read()).detail, { timeout: 10_000 }).toBe("");
    const values = () =>
      client.messages
        .filter(({ type }) => type === "agent_data")
        .flatMap(({ data }) => (data as { value: number }[]).map(({ value }) => value));
    // The agent is followed again after the next poll.
    await expect
      .poll(
        async () => {
          await report(3);
          return values().at(-1);
        },
        { timeout: 10_000, interval: 500 },
      )
      .toBe(3);
    expect(values()[0]).toBe(1);
    client.disconnect();
    expect((await send("DELETE", `/api/v1/jobs/${job_number}`, undefined, user.token)).status).toBe(200);
  });
});
