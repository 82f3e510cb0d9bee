import { env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { adminToken, bearer, newAgent, newApp, send, signedUp, uniqueName } from "../support.ts";
import { connect, isFinal, post, postBytes, status, stream } from "./job-requests.ts";

/** `JSON.parse` changes each of these numbers; `JSON.stringify` drops the spaces and moves the key "1" to the front. */
const TEXT =
  ' [ {"b" : 12345678901234567890, "1": 1e400 ,"a":\t0.1000000000000000055},\r\n {"é":"\\u00e9 \\ud800"} ]\n';

describe("a callback", () => {
  it("reaches sockets that are connected, and those that connect later", async () => {
    const { token } = await signedUp();
    const job = uniqueName();
    const first = await post("agent_details", job, [{ a: 1 }], token);
    expect(await first.json()).toEqual({
      status: "success",
      job_number: job,
      seq: 1,
      delivered: 0,
      queued: true,
      detail: "Stored until a socket connects",
    });
    const client = await stream(job, token);
    const second = await post("emulator", job, [{ b: 2 }], token);
    expect(await second.json()).toMatchObject({ seq: 2, delivered: 1, queued: false });
    expect(
      (await client.until((messages) => messages.length === 2)).map(({ seq, type, data }) => [seq, type, data]),
    ).toEqual([
      [1, "agent_details", [{ a: 1 }]],
      [2, "emulator", [{ b: 2 }]],
    ]);
    client.ack(2);
    await expect.poll(() => status(job, token)).toMatchObject({ retained: 0, acknowledged_up_to: 2, messages: 2 });
  });

  it("counts once if it is repeated with the same key", async () => {
    const { token } = await signedUp();
    const job = uniqueName();
    const responses = [];
    for (let i = 0; i < 2; i++) {
      responses.push(await (await post("agent_data", job, [i], token, { "Idempotency-Key": "k" })).json());
    }
    expect(responses).toMatchObject([{ seq: 1 }, { seq: 1 }]);
    expect(await status(job, token)).toMatchObject({ messages: 1 });
    const long = { "Idempotency-Key": "k".repeat(257) };
    expect((await post("agent_data", job, [], token, long)).status).toBe(422);
  });

  it("gets its own number if many arrive at once, and each is delivered once", async () => {
    const { token } = await signedUp();
    const job = uniqueName();
    await post("agent_data", job, [0], token);
    const client = await stream(job, token);
    const numbers = Array.from({ length: 40 }, (_, i) => i + 1);
    const answers = await Promise.all(
      numbers.map(async (n) => {
        // The last ten repeat a key.
        const key = { "Idempotency-Key": `k${Math.min(n, 31)}` };
        return (await (await post("agent_data", job, [n], token, key)).json()) as { seq: number; delivered: number };
      }),
    );
    const received = await client.until((messages) => messages.length === 32);
    expect(received.map(({ seq }) => seq)).toEqual(Array.from({ length: 32 }, (_, i) => i + 1));
    for (const [i, { seq, delivered }] of answers.entries()) {
      expect(delivered).toBe(1);
      const [n] = (received.find((message) => message.seq === seq)?.data ?? []) as [number];
      expect(Math.min(n, 31)).toBe(Math.min(i + 1, 31));
    }
  });

  it.each([
    ["agent_data", [1, "a", null, { b: 2 }], 200],
    ["agent_data", { a: 1 }, 422],
    ["agent_details", [1], 422],
    ["emulator", [{ a: 1 }, 2], 422],
    ["command", [{ done: true }], 200],
  ])("of kind %s with body %j gets status %i", async (kind, data, expected) => {
    const { token } = await signedUp();
    expect((await post(kind, uniqueName(), data, token)).status).toBe(expected);
  });

  it("is rejected with 422 if the job number is malformed", async () => {
    const { token } = await signedUp();
    expect((await post("agent_data", encodeURIComponent("a b"), [], token)).status).toBe(422);
    expect((await post("agent_data", "x".repeat(129), [], token)).status).toBe(422);
  });

  it("claims an unused number for its sender, unless that is a callback client", async () => {
    const [one, two, callbackClient] = await Promise.all([signedUp(), signedUp(), newApp({ callbacks: true })]);
    const [theirs, open] = [uniqueName(), uniqueName()];
    expect((await post("agent_data", theirs, [1], one.token)).status).toBe(200);
    expect((await post("agent_data", theirs, [2], two.token)).status).toBe(403);
    expect((await stream(theirs, two.token)).response.status).toBe(403);
    expect((await post("agent_data", theirs, [3], callbackClient.token)).status).toBe(200);
    expect((await post("agent_data", theirs, [4], await adminToken())).status).toBe(200);

    expect((await post("agent_data", open, [1], callbackClient.token)).status).toBe(200);
    const reader = await stream(open, two.token);
    expect((await reader.until((messages) => messages.length === 1))[0]?.data).toEqual([1]);
    expect((await stream(open, one.token)).response.status).toBe(403);
    expect(await status(open, two.token)).toMatchObject({ kind: "stream", owner: `user:${two.username}` });
  });

  it("is accepted from an agent only for jobs about itself", async () => {
    const [agent, other, user] = await Promise.all([newAgent(), newAgent(), signedUp()]);
    const path = `/api/v1/agent_data/request_agent_data?agent_id=${agent.apId}&start_time=1000&end_time=2000`;
    const { job_number } = (await (await send("POST", path, undefined, user.token)).json()) as { job_number: string };
    expect((await post("command", job_number, [{ ok: true }], agent.token)).status).toBe(200);
    expect((await post("command", job_number, [{ ok: true }], other.token)).status).toBe(403);
    expect((await post("command", uniqueName(), [{ ok: true }], agent.token)).status).toBe(403);
    expect((await stream(uniqueName(), agent.token)).response.status).toBe(403);
  });
});

describe("an agent's result that arrives through the broker", () => {
  it("reaches only the job about the agent, and only once", async () => {
    const [agent, other, user, bridge] = await Promise.all([
      newAgent(),
      newAgent(),
      signedUp(),
      newApp({ broker: true }),
    ]);
    const path = `/api/v1/agent_data/request_agent_data?agent_id=${agent.apId}&start_time=1000&end_time=2000`;
    const { job_number } = (await (await send("POST", path, undefined, user.token)).json()) as { job_number: string };
    const client = await stream(job_number, user.token);
    await client.until(isFinal);
    const delivery = (apId: string, result: unknown) => ({ ap_id: apId, received_at: Date.now(), result });
    const result = { job_number, status: "done", data: { x: 1 } };
    const messages = [
      delivery(agent.apId, result),
      delivery(agent.apId, result),
      delivery(other.apId, result),
      delivery(agent.apId, { ...result, status: "perhaps" }),
      delivery(agent.apId, { ...result, job_number: uniqueName() }),
    ];
    const response = await send("POST", "/api/v1/bridge/data", { messages }, bridge.token);
    expect(await response.json()).toMatchObject({
      results: [
        { accepted: 0 },
        { accepted: 0 },
        { error: "Job not found" },
        { error: expect.any(String) },
        { error: "Job not found" },
      ],
    });
    await client.until((all) => all.some(({ type }) => type === "command"));
    expect(client.messages().filter(({ type }) => type === "command")).toMatchObject([
      { final: true, data: [{ status: "done", data: { x: 1 } }] },
    ]);
  });

  it("does not prevent other deliveries if its job's object fails", async () => {
    const [agent, user, bridge] = await Promise.all([newAgent(), signedUp(), newApp({ broker: true })]);
    const path = `/api/v1/send_command?agent_id=${agent.apId}&command=ping`;
    const { job_number } = (await (await send("POST", path, undefined, user.token)).json()) as { job_number: string };
    const inObject = (statement: string) =>
      runInDurableObject(env.JOB_STREAM.getByName(job_number), (_, { storage }) => void storage.sql.exec(statement));
    // A table with other columns than the object expects.
    await inObject("CREATE TABLE stream (other)");
    const of = { ap_id: agent.apId, received_at: Date.now() };
    const messages = [
      { ...of, result: { job_number, status: "done", data: {} } },
      { ...of, report: { a: 1 } },
    ];
    const response = await send("POST", "/api/v1/bridge/data", { messages }, bridge.token);
    expect(await response.json()).toMatchObject({ results: [{ error: "Internal Server Error" }, { accepted: 1 }] });
    await inObject("DROP TABLE stream");
  });
});

describe("a callback's text", () => {
  it.each(["agent_data", "agent_details", "emulator", "command"])(
    "arrives byte for byte in the envelope and on a bare socket: %s",
    async (kind) => {
      const { token } = await signedUp();
      const job = uniqueName();
      expect((await postBytes(kind, job, TEXT, token)).status).toBe(200);
      const { texts: envelope } = await stream(job, token);
      const { texts: bare } = await connect(`/api/v1/callback/agent_data/ws/${job}`, bearer(token));
      await expect.poll(() => [envelope.length, bare.length]).toEqual([1, 1]);
      expect(bare).toEqual([TEXT]);
      expect(envelope[0]?.slice(envelope[0].indexOf(',"data":'))).toBe(`,"data":${TEXT}}`);
    },
  );

  it("arrives without the byte order mark that preceded it", async () => {
    const { token } = await signedUp();
    const job = uniqueName();
    await postBytes("agent_data", job, new TextEncoder().encode("\ufeff[1.0]"), token);
    const { texts: bare } = await connect(`/api/v1/callback/agent_data/ws/${job}`, bearer(token));
    await expect.poll(() => bare).toEqual(["[1.0]"]);
  });

  it.each([
    ["invalid JSON", "[1,]", 422],
    ["JSON that is followed by more text", "[1]}", 422],
    ["JSON that is nested too deeply", `${"[".repeat(33)}${"]".repeat(33)}`, 422],
    ["a value that is no array", '{"a":1}', 422],
    ["bytes that are not UTF-8", new Uint8Array([0x5b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x5d]), 400],
    ["more than 1 MiB", `[${" ".repeat(1024 * 1024)}]`, 413],
  ])("is rejected if it is %s", async (_, body, status) => {
    const { token } = await signedUp();
    expect((await postBytes("agent_data", uniqueName(), body, token)).status).toBe(status);
  });
});
