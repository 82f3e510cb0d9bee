import { env, runDurableObjectAlarm } from "cloudflare:test";
import { eq } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import { createEncryptor } from "../../../src/auth/encryptor.ts";
import { createTokens } from "../../../src/auth/tokens.ts";
import { BrokerConnection } from "../../../src/broker/mqtt-connection.ts";
import { outbox } from "../../../src/broker/outbox-table.ts";
import { parseEnv } from "../../../src/env.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, bearer, newAgent, request, send, settings, signedUp, uniqueName } from "../support.ts";

const config = parseEnv(env);
const database = createDatabase({ url: config.LIBSQL_URL });
const encryptor = createEncryptor(config.ENCRYPTION_KEY);
const inOutbox = async (jobNumber: string) =>
  (await database.select().from(outbox).where(eq(outbox.jobNumber, jobNumber)))[0];
const command = (apId: string, text: string, token: string) =>
  send("POST", `/api/v1/send_command?agent_id=${apId}&command=${encodeURIComponent(text)}`, undefined, token);
const jobOf = async (response: Response) => ((await response.json()) as { job_number: string }).job_number;
const stateOf = async (jobNumber: string, token: string) =>
  ((await (await send("GET", `/api/v1/jobs/${jobNumber}`, undefined, token)).json()) as { state: string }).state;

describe("a command", () => {
  it("is published to its agent until the agent posts a result", async () => {
    const [agent, user] = await Promise.all([newAgent(), signedUp()]);
    const jobNumber = await jobOf(await command(agent.apId, "set_channel 36", user.token));
    await expect.poll(async () => (await inOutbox(jobNumber))?.published, { timeout: 10_000 }).toBeGreaterThan(0);
    const { topic, payload } = (await inOutbox(jobNumber)) ?? { topic: "", payload: "{}" };
    expect(topic).toBe(`agent/${agent.apId}/command`);
    expect(JSON.parse(await encryptor.open(payload, jobNumber))).toMatchObject({
      job_number: jobNumber,
      command: "set_channel 36",
    });

    const socket = await request(`/api/v1/ws/${jobNumber}`, {
      headers: { Upgrade: "websocket", ...bearer(user.token) },
    });
    const messages: unknown[] = [];
    socket.webSocket?.accept();
    socket.webSocket?.addEventListener("message", ({ data }) => void messages.push(JSON.parse(String(data))));
    const path = `/api/v1/callback/command?job_number=${jobNumber}`;
    expect((await send("POST", path, [{ channel: 36 }], agent.token)).status).toBe(200);
    await expect.poll(() => messages).toMatchObject([{ type: "command", final: true, data: [{ channel: 36 }] }]);
    expect(await inOutbox(jobNumber)).toBeUndefined();
    expect(await stateOf(jobNumber, user.token)).toBe("done");
  });

  it("is published again without a result, and then expires", async () => {
    const [agent, user] = await Promise.all([newAgent(), signedUp()]);
    const jobNumber = await jobOf(await command(agent.apId, "ping", user.token));
    await expect.poll(async () => (await inOutbox(jobNumber))?.published, { timeout: 10_000 }).toBe(1);
    const publisher = env.PUBLISHER.getByName("publisher");
    const startMs = Date.now();
    const clock = vi.spyOn(Date, "now");
    try {
      clock.mockImplementation(() => startMs + 5_000);
      await runDurableObjectAlarm(publisher);
      expect((await inOutbox(jobNumber))?.published).toBe(2);
      clock.mockImplementation(() => startMs + 61_000);
      await runDurableObjectAlarm(publisher);
    } finally {
      clock.mockRestore();
    }
    expect(await inOutbox(jobNumber)).toBeUndefined();
    expect(await stateOf(jobNumber, user.token)).toBe("expired");
    const late = await send("POST", `/api/v1/callback/command?job_number=${jobNumber}`, [{}], agent.token);
    expect(late.status).toBe(409);
  });

  it("fails if its agent reports so over HTTP", async () => {
    const [agent, user] = await Promise.all([newAgent(), signedUp()]);
    const jobNumber = await jobOf(await command(agent.apId, "ping", user.token));
    const path = `/api/v1/callback/command?job_number=${jobNumber}`;
    expect((await send("POST", path, [{ status: "failed" }], agent.token)).status).toBe(200);
    expect(await stateOf(jobNumber, user.token)).toBe("failed");
  });

  it("with a result at the moment of its expiry stays done and ends once", async () => {
    const [agent, user] = await Promise.all([newAgent(), signedUp()]);
    const jobNumber = await jobOf(await command(agent.apId, "ping", user.token));
    const message = await inOutbox(jobNumber);
    if (message === undefined) throw new Error("The command is not in the outbox");
    const path = `/api/v1/callback/command?job_number=${jobNumber}`;
    expect((await send("POST", path, [{}], agent.token)).status).toBe(200);
    // The publisher may have read the message as expired just before the result arrived.
    await database.insert(outbox).values({ ...message, expiresAt: new Date(0) });
    await runDurableObjectAlarm(env.PUBLISHER.getByName("publisher"));
    await expect.poll(() => inOutbox(jobNumber)).toBeUndefined();
    const job = await send("GET", `/api/v1/jobs/${jobNumber}`, undefined, user.token);
    expect(await job.json()).toMatchObject({ state: "done", messages: 1 });
  });

  it("is no longer published after it was cancelled", async () => {
    const [agent, user] = await Promise.all([newAgent(), signedUp()]);
    const jobNumber = await jobOf(await command(agent.apId, "power_off", user.token));
    expect((await send("DELETE", `/api/v1/jobs/${jobNumber}`, undefined, user.token)).status).toBe(200);
    expect(await inOutbox(jobNumber)).toBeUndefined();
    expect(await stateOf(jobNumber, user.token)).toBe("cancelled");
  });

  it("gets 409 within ten seconds of another one, whose job number only an administrator sees", async () => {
    const [agent, user] = await Promise.all([newAgent(), signedUp()]);
    const attempts = await Promise.all(Array.from({ length: 5 }, () => command(agent.apId, "reboot", user.token)));
    expect(attempts.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409]);
    const winner = await jobOf(attempts.find(({ status }) => status === 200) as Response);
    const refused = attempts.find(({ status }) => status === 409);
    expect(Number(refused?.headers.get("Retry-After"))).toBeGreaterThan(0);
    expect(await refused?.text()).not.toContain(winner);
    expect(await (await command(agent.apId, "ping", user.token)).text()).not.toContain(winner);
  });

  it("of an administrator is accepted within ten seconds of a user's command, but not of an administrator's", async () => {
    const [agent, user, admin] = await Promise.all([newAgent(), signedUp(), adminToken()]);
    expect((await command(agent.apId, "reboot", user.token)).status).toBe(200);
    const accepted = await command(agent.apId, "power_off", admin);
    expect(accepted.status).toBe(200);
    const second = await command(agent.apId, "power_on", admin);
    expect([second.status, await second.text()]).toEqual([409, expect.stringContaining(await jobOf(accepted))]);
    expect((await command(agent.apId, "reboot", user.token)).status).toBe(409);
    const many = await send("POST", "/api/v1/commands", { command: "ping", agents: { ap_ids: [agent.apId] } }, admin);
    expect(await many.json()).toMatchObject({ jobs: [], refused: [{ ap_id: agent.apId }] });
  });

  it("of an administrator to several agents is also sent within ten seconds of a user's command", async () => {
    const [agent, user, admin] = await Promise.all([newAgent(), signedUp(), adminToken()]);
    expect((await command(agent.apId, "reboot", user.token)).status).toBe(200);
    const body = { command: "power_off", agents: { ap_ids: [agent.apId] } };
    const many = await send("POST", "/api/v1/commands", body, admin);
    expect(await many.json()).toMatchObject({ jobs: [{ ap_id: agent.apId }], refused: [] });
  });

  it("gets 400 if the agent lists its commands and this is not one of them", async () => {
    const [agent, user] = await Promise.all([newAgent({ commands: ["ping", "set_tx_power"] }), signedUp()]);
    expect((await command(agent.apId, "explode", user.token)).status).toBe(400);
    expect((await command(agent.apId, "set_tx_power 12", user.token)).status).toBe(200);
  });

  it("gets 404 for an unknown agent and 422 for an invalid name", async () => {
    const { token } = await signedUp();
    expect((await command(uniqueName(), "ping", token)).status).toBe(404);
    for (const apId of ["%23", "%2B", "a%2Fb", "%00", "%C3%BC", "x".repeat(10_000)]) {
      expect((await command(apId, "ping", token)).status).toBe(422);
    }
  });

  it.each(["", " ping", "a\u0000b", "a\nb", "x".repeat(257), "x".repeat(100_000)])(
    "gets 422 if its text is invalid: %#",
    async (text) => {
      const [agent, user] = await Promise.all([newAgent(), signedUp()]);
      expect((await command(agent.apId, text, user.token)).status).toBe(422);
    },
  );

  it("is sent to several agents by name, type and area, and the response lists the refused agents", async () => {
    const at = (latitude: number) => ({ geolocation: { latitude, longitude: 1 } });
    const kind = { access_point_type: "LiFi" };
    const [here, near, far, other, incapable] = await Promise.all([
      newAgent({ ...kind, ...at(10) }),
      newAgent({ ...kind, ...at(10.001) }),
      newAgent({ ...kind, ...at(11) }),
      newAgent({ access_point_type: "5G", ...at(10) }),
      newAgent({ ...kind, ...at(10), commands: [] }),
    ]);
    const { token } = await signedUp();
    const all = [here, near, far, other, incapable].map(({ apId }) => apId);
    const sendTo = async (agents: object) => {
      const response = await send("POST", "/api/v1/commands", { command: "power_off", agents }, token);
      expect(response.status).toBe(200);
      return (await response.json()) as { jobs: { ap_id: string; job_number: string }[]; refused: { ap_id: string }[] };
    };
    const area = { latitude: 10, longitude: 1, radius_m: 500 };
    const unknown = uniqueName();
    const { jobs, refused } = await sendTo({ ap_ids: [...all, unknown], access_point_type: "LiFi", area });
    expect(jobs.map(({ ap_id }) => ap_id).toSorted()).toEqual([here.apId, near.apId].toSorted());
    expect(refused).toEqual([
      { ap_id: incapable.apId, detail: "The agent does not know this command" },
      { ap_id: unknown, detail: "Agent not found" },
    ]);
    await expect.poll(async () => (await inOutbox(jobs[0]?.job_number ?? ""))?.published, { timeout: 10_000 }).toBe(1);
    const again = await sendTo({ ap_ids: [here.apId, far.apId] });
    expect(again.jobs.map(({ ap_id }) => ap_id)).toEqual([far.apId]);
    expect(again.refused).toMatchObject([{ ap_id: here.apId }]);
    expect((await send("POST", "/api/v1/commands", { command: "x", agents: {} }, token)).status).toBe(422);
  });

  it("in the outbox is counted in readyz", async () => {
    const response = await request("/readyz");
    expect(await response.json()).toMatchObject({
      outbox: { messages: expect.any(Number), oldest_ms: expect.any(Number) },
    });
  });
});

describe("the connection to the broker", () => {
  const login = async (sub: string) => ({
    clientId: uniqueName(),
    keepAliveS: 60,
    username: sub,
    password: await createTokens({ keys: config.JWT_KEYS, issuer: config.JWT_ISSUER, lifetimeSeconds: 60 }).issue({
      sub,
      login_type: "third_party_app",
      roles: [],
      scope: "broker:use",
      ver: 0,
    }),
  });
  const signal = () => AbortSignal.timeout(5_000);

  it.each(["MQTT_URL", "MQTT_TCP_URL"])(
    "publishes messages concurrently and gets each acknowledged: %s",
    async (setting) => {
      const connection = await BrokerConnection.open(settings[setting] ?? "", await login("publisher"), signal());
      const large = "x".repeat(200_000);
      await Promise.all(
        Array.from({ length: 50 }, (_, i) => connection.publish("emulator_test", i === 7 ? large : String(i))),
      );
      expect(connection.isOpen).toBe(true);
      connection.close();
      await expect(connection.publish("emulator_test", "x")).rejects.toThrow("closed");
    },
  );

  it("is refused with the token of another client, and rejects topics with wildcards", async () => {
    const { password } = await login("publisher");
    const wrong = { ...(await login("other-client")), password };
    await expect(BrokerConnection.open(settings.MQTT_URL ?? "", wrong, signal())).rejects.toThrow(/refused|closed/);
    const connection = await BrokerConnection.open(settings.MQTT_URL ?? "", await login("publisher"), signal());
    for (const topic of ["agent/#", "agent/+/command", "a\u0000b"]) {
      await expect(connection.publish(topic, "x")).rejects.toThrow("wildcards");
    }
    connection.close();
  });
});
