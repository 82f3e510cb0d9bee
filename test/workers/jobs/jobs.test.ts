import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import {
  adminToken,
  appWith,
  bearer,
  newAgent,
  newApp,
  PASSWORD,
  request,
  send,
  signedUp,
  testStore,
  tokenOf,
  uniqueName,
} from "../support.ts";
import { connect, isFinal, post, rowsOf, status, stream } from "./job-requests.ts";
import type { Envelope } from "./job-support.ts";

describe("a request for all agents", () => {
  it("returns a job immediately, whose socket delivers every agent and then a summary", async () => {
    const [{ token }, { apId }] = await Promise.all([signedUp(), newAgent({ a: 1 })]);
    const response = await send("POST", "/api/v1/agent_details/request_all_agents_details", undefined, token);
    const { status: queued, job_number, websocket } = (await response.json()) as Record<string, string>;
    expect({ queued, websocket }).toEqual({ queued: "queued", websocket: `/api/v1/ws/${job_number}` });
    const client = await stream(job_number ?? "", token);
    const messages = await client.until(isFinal);
    expect(messages.map(({ seq }) => seq)).toEqual(messages.map((_, i) => i + 1));
    const rows = rowsOf(messages, "agent_details");
    expect(rows).toContainEqual({ id: expect.any(String), ap_id: apId, configuration: { a: 1 }, onboard: true });
    expect(messages.at(-1)).toMatchObject({
      type: "status",
      final: true,
      data: { state: "done", rows_sent: rows.length },
    });
    await expect.poll(() => status(job_number ?? "", token)).toMatchObject({ state: "done", kind: "agent_details" });
    expect(await status(job_number ?? "", token)).toMatchObject({ rows_sent: rows.length, sockets: 1 });
    client.end();
  });

  it("cannot be read by an app that lost the permission to request it", async () => {
    const { appName, token } = await newApp();
    const response = await send("POST", "/api/v1/agent_details/request_all_agents_details", undefined, token);
    const { job_number } = (await response.json()) as { job_number: string };
    const client = await stream(job_number, token);
    await client.until(isFinal);
    const path = `/api/v1/third_party_apps/${appName}`;
    await send("PUT", path, { permissions: { agents: false } }, await adminToken());
    const again = await tokenOf(appName, PASSWORD, "third_party_app");
    expect((await stream(job_number, again)).response.status).toBe(403);
  });

  it("delivers only the agents that an app is limited to", async () => {
    const { apId } = await newAgent();
    const { token } = await newApp({ ap_ids: [apId] });
    const response = await send("POST", "/api/v1/agent_details/request_all_agents_details", undefined, token);
    const { job_number } = (await response.json()) as { job_number: string };
    const client = await stream(job_number, token);
    expect(rowsOf(await client.until(isFinal), "agent_details").map(({ ap_id }) => ap_id)).toEqual([apId]);
  });
});

describe("a request for an agent's data", () => {
  const requestData = async (apId: string, token: string, startMs: number, endMs: number) => {
    const [start, end] = [new Date(startMs).toISOString(), new Date(endMs).toISOString()];
    const path = `/api/v1/agent_data/request_agent_data?agent_id=${apId}&start_time=${start}&end_time=${end}`;
    return await send("POST", path, undefined, token);
  };

  it("streams stored rows by field and ascending time, numbers before strings, in several messages", async () => {
    const { apId, token } = await newAgent();
    const startMs = Date.now() - 3_600_000;
    const samples = Array.from({ length: 6_000 }, (_, i) => ({
      apId,
      tsMs: startMs + i * 500,
      metrics: { b: i, a: i / 7 },
      texts: i % 1_000 === 0 ? { note: `n${i}` } : {},
    }));
    await testStore().insert(samples, crypto.randomUUID());
    const response = await requestData(apId, token, startMs, Date.now());
    const { job_number } = (await response.json()) as { job_number: string };
    const client = await stream(job_number, token);
    const messages = await client.until(isFinal);
    const at = (i: number) => new Date(startMs + i * 500).toISOString();
    const rows = rowsOf(messages, "agent_data");
    expect(rows).toHaveLength(12_006);
    expect(rows.slice(0, 6_000)).toEqual(samples.map((_, i) => ({ time: at(i), field: "a", value: i / 7 })));
    expect(rows.slice(6_000, 12_000)).toEqual(samples.map((_, i) => ({ time: at(i), field: "b", value: i })));
    expect(rows.slice(12_000)).toEqual(
      [0, 1, 2, 3, 4, 5].map((k) => ({ time: at(k * 1_000), field: "note", value: `n${k * 1_000}` })),
    );
    const sizes = messages.filter(({ type }) => type === "agent_data").map(({ data }) => (data as unknown[]).length);
    expect(Math.max(...sizes)).toBe(5_000);
    expect(messages[0]).toMatchObject({ type: "status", data: { state: "running", rows_estimated: 12_006 } });
    expect(messages.at(-1)).toMatchObject({ type: "status", final: true, data: { state: "done", rows_sent: 12_006 } });
  });

  it("follows new samples if it ends in the future, and ends then", async () => {
    const { apId, token } = await newAgent();
    const report = async (value: number) =>
      expect((await send("POST", "/api/v1/agent_update/update", { x: value, text: `t${value}` }, token)).status).toBe(
        200,
      );
    await report(1);
    const endMs = Date.now() + 4_000;
    const { job_number } = (await (await requestData(apId, token, endMs - 60_000, endMs)).json()) as {
      job_number: string;
    };
    const client = await stream(job_number, token);
    const valuesOf = (messages: Envelope[]) =>
      rowsOf(messages, "agent_data").flatMap(({ field, value }) => (field === "x" ? [value] : []));
    await client.until((messages) => valuesOf(messages).includes(1));
    for (const value of [2, 3]) {
      await report(value);
      await client.until((messages) => valuesOf(messages).includes(value));
    }
    const messages = await client.until(isFinal);
    expect(valuesOf(messages)).toEqual([1, 2, 3]);
    expect(rowsOf(messages, "agent_data")).toContainEqual({ time: expect.any(String), field: "text", value: "t3" });
    expect(Date.now()).toBeGreaterThanOrEqual(endMs);
  });

  it.each([
    [0, "end_time must be after start_time"],
    [-1, "end_time must be after start_time"],
    [366 * 86_400_000 + 1, "the range must not exceed 366 days"],
  ])("is rejected with 422 for a range of %i ms", async (rangeMs, msg) => {
    const { apId, token } = await newAgent();
    const startMs = Date.now() - 400 * 86_400_000;
    const response = await requestData(apId, token, startMs, startMs + rangeMs);
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({
      detail: [{ loc: ["query", "end_time"], msg: `Value error, ${msg}`, type: "value_error" }],
    });
  });

  it.each(["start_time", "end_time"])("is rejected with 422 if the day does not exist: %s", async (name) => {
    const { apId, token } = await newAgent();
    const times = {
      start_time: "2026-02-01T00:00:00Z",
      end_time: "2026-03-01T00:00:00Z",
      [name]: "2026-02-30T00:00:00Z",
    };
    const path = `/api/v1/agent_data/request_agent_data?${new URLSearchParams({ agent_id: apId, ...times })}`;
    const response = await send("POST", path, undefined, token);
    expect(response.status).toBe(422);
    const msg = "Input should be a valid datetime or date, day value is outside expected range";
    const detail = [{ loc: ["query", name], msg, type: "datetime_from_date_parsing" }];
    expect(await response.json()).toEqual({ detail });
  });

  it("is rejected with 404 for an agent that does not exist", async () => {
    const { token } = await signedUp();
    expect((await requestData(uniqueName(), token, Date.now() - 1_000, Date.now())).status).toBe(404);
  });
});

describe("a socket", () => {
  it("accepts its token as a protocol, and selects the other protocol", async () => {
    const { token } = await signedUp();
    const client = await connect(`/api/v1/ws/${uniqueName()}`, {
      "Sec-WebSocket-Protocol": `job-stream.v1, bearer.${token}`,
    });
    expect(client.response.status).toBe(101);
    expect(client.response.headers.get("Sec-WebSocket-Protocol")).toBe("job-stream.v1");
    expect((await connect(`/api/v1/ws/${uniqueName()}`, {})).response.status).toBe(401);
    const wrong = { "Sec-WebSocket-Protocol": "job-stream.v1, bearer.x" };
    expect((await connect(`/api/v1/ws/${uniqueName()}`, wrong)).response.status).toBe(401);
  });

  it.each(["agent_data", "agent_details", "emulator"])(
    "gets bare arrays on the reference implementation's path for %s",
    async (kind) => {
      const { token } = await signedUp();
      const job = uniqueName();
      await post(kind, job, [{ a: 1 }], token);
      const client = await connect(`/api/v1/callback/${kind}/ws/${job}`, bearer(token));
      await expect.poll(() => client.texts).toEqual(['[{"a":1}]']);
    },
  );

  it("resumes after the last message that it has", async () => {
    const { token } = await signedUp();
    const job = uniqueName();
    for (let i = 1; i <= 5; i++) await post("agent_data", job, [i], token);
    const client = await stream(job, token);
    await client.until((messages) => messages.length === 5);
    client.end();
    const again = await stream(job, token, "?after=3");
    expect((await again.until((messages) => messages.length === 2)).map(({ seq }) => seq)).toEqual([4, 5]);
    expect((await stream(job, token, "?after=-1")).response.status).toBe(422);
  });

  it.each<[string, Record<string, string>]>([
    ["GET", {}],
    ["GET", { Upgrade: "h2c" }],
    ["GET", { Upgrade: "websocket", "Sec-WebSocket-Version": "8" }],
    ["HEAD", { Upgrade: "websocket" }],
  ])("is rejected with 426 if the request cannot be upgraded: %s %o", async (method, headers) => {
    const { token } = await signedUp();
    const response = await request(`/api/v1/ws/${uniqueName()}`, { method, headers: { ...bearer(token), ...headers } });
    expect(response.status).toBe(426);
    expect(response.headers.get("Upgrade")).toBe("websocket");
    expect(response.headers.get("Sec-WebSocket-Version")).toBe("13");
  });

  it("is closed when its job is cancelled, which then rejects messages", async () => {
    const { token } = await signedUp();
    const job = uniqueName();
    const client = await stream(job, token);
    await post("agent_data", job, [1], token);
    expect((await send("DELETE", `/api/v1/jobs/${job}`, undefined, token)).status).toBe(200);
    await expect.poll(client.closed).toEqual({ code: 4410, reason: "The job was cancelled" });
    const late = await post("agent_data", job, [2], token);
    expect(late.status).toBe(409);
    expect(await late.json()).toEqual({ detail: "The job was cancelled" });
    expect(await status(job, token)).toMatchObject({ state: "cancelled" });
  });
});

describe("jobs", () => {
  it("are not stored if they cannot be started", async () => {
    const { token } = await signedUp();
    const start = () => Promise.reject(new Error("broken"));
    const JOB_STREAM = { getByName: () => ({ start }) } as unknown as typeof env.JOB_STREAM;
    const path = "/api/v1/agent_details/request_all_agents_details";
    const response = await appWith({}, { JOB_STREAM }).request(path, { method: "POST", headers: bearer(token) }, env);
    expect(response.status).toBe(500);
    expect(await (await send("GET", "/api/v1/jobs/", undefined, token)).json()).toEqual([]);
  });

  it("are listed newest first, only to their owner, by kind and state, in pages", async () => {
    const [one, two] = await Promise.all([signedUp(), signedUp()]);
    const numbers = [uniqueName(), uniqueName(), uniqueName()];
    for (const job of numbers) await post("agent_data", job, [1], one.token);
    await send("DELETE", `/api/v1/jobs/${numbers[0]}`, undefined, one.token);
    const list = async (query: string, token: string) => {
      const response = await send("GET", `/api/v1/jobs/${query}`, undefined, token);
      expect(response.status).toBe(200);
      return ((await response.json()) as { job_number: string }[]).map(({ job_number }) => job_number);
    };
    expect(await list("", one.token)).toEqual(numbers.toReversed());
    expect(await list("?limit=1&offset=1", one.token)).toEqual([numbers[1]]);
    expect(await list("?state=cancelled", one.token)).toEqual([numbers[0]]);
    expect(await list("?kind=emulator", one.token)).toEqual([]);
    expect(await list("", two.token)).toEqual([]);
    expect(await list("?limit=1000", await adminToken())).toEqual(expect.arrayContaining(numbers));
    expect((await send("GET", "/api/v1/jobs/?state=lost", undefined, one.token)).status).toBe(422);
  });

  it("of others are rejected with 403, and unknown ones with 404", async () => {
    const [one, two] = await Promise.all([signedUp(), signedUp()]);
    const job = uniqueName();
    await post("agent_data", job, [1], one.token);
    for (const method of ["GET", "DELETE"]) {
      expect((await send(method, `/api/v1/jobs/${job}`, undefined, two.token)).status).toBe(403);
      expect((await send(method, `/api/v1/jobs/${uniqueName()}`, undefined, two.token)).status).toBe(404);
    }
    expect((await send("GET", `/api/v1/jobs/${job}`, undefined, await adminToken())).status).toBe(200);
  });

  it("cannot be cancelled after they are done, but accept callbacks", async () => {
    const { token } = await signedUp();
    const response = await send("POST", "/api/v1/agent_details/request_all_agents_details", undefined, token);
    const { job_number } = (await response.json()) as { job_number: string };
    const client = await stream(job_number, token);
    await client.until(isFinal);
    await expect.poll(async () => (await status(job_number, token)).state).toBe("done");
    expect((await send("DELETE", `/api/v1/jobs/${job_number}`, undefined, token)).status).toBe(409);
    expect((await post("agent_details", job_number, [{ late: true }], token)).status).toBe(200);
    expect(
      (await client.until((messages) => rowsOf(messages, "agent_details").some(({ late }) => late))).at(-1),
    ).toMatchObject({ final: false });
  });
});
