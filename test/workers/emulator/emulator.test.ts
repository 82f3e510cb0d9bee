import { env, runInDurableObject } from "cloudflare:test";
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { createEncryptor } from "../../../src/auth/encryptor.ts";
import { outbox } from "../../../src/broker/outbox-table.ts";
import type { SpinupMessage } from "../../../src/emulator/plan.ts";
import { parseEnv } from "../../../src/env.ts";
import { createJobStore } from "../../../src/jobs/job-store.ts";
import { encodeJson } from "../../../src/lib/encoding.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, bearer, newApp, postJson, send, settings, signedUp, tokenOf, uniqueName } from "../support.ts";

const config = parseEnv(env);
const database = createDatabase({ url: config.LIBSQL_URL });
const encryptor = createEncryptor(config.ENCRYPTION_KEY);

const spec = (changes: object = {}) => ({
  access_point_type: "WiFi",
  num_access_points: 2,
  locations: ["Bristol, UK"],
  num_devices: 5,
  duration: 60,
  ...changes,
});
const spinUp = (emulators: unknown, token: string) => send("POST", "/api/v1/emulator/spinup", { emulators }, token);
const queued = async (emulators: unknown, token: string) => {
  const response = await spinUp(emulators, token);
  expect(response.status).toBe(200);
  return (await response.json()) as {
    job_number: string;
    agents: number;
    ap_ids: string[];
    locations: { location: string; latitude: number; longitude: number; place?: string }[];
  };
};
/** Returns the messages to the emulators. */
const messagesOf = async (jobNumber: string) => {
  const rows = await database.select().from(outbox).where(eq(outbox.jobNumber, jobNumber)).orderBy(outbox.part);
  return await Promise.all(
    rows.map(async ({ payload }) => JSON.parse(await encryptor.open(payload, jobNumber)) as SpinupMessage),
  );
};
const report = (jobNumber: string, item: object, token: string, key?: string) =>
  postJson(`/api/v1/callback/emulator?job_number=${jobNumber}`, [item], {
    ...bearer(token),
    ...(key !== undefined && { "Idempotency-Key": key }),
  });
const stateOf = async (jobNumber: string, token: string) =>
  ((await (await send("GET", `/api/v1/jobs/${jobNumber}`, undefined, token)).json()) as { state: string }).state;

describe("completion of place names", () => {
  interface Suggestion {
    name: string;
    country: string;
    latitude: number;
    longitude: number;
    location: string;
  }
  const requestPlaces = async (text: string, limit = "") =>
    await send("GET", `/api/v1/places?text=${encodeURIComponent(text)}${limit}`, undefined, await adminToken());
  const places = async (text: string, limit?: string) => {
    const response = await requestPlaces(text, limit);
    expect(response.status).toBe(200);
    return (await response.json()) as Suggestion[];
  };
  const locations = async (text: string, limit?: string) => (await places(text, limit)).map(({ location }) => location);

  it("finds towns by the start of their names, cities first, each once", async () => {
    const found = await places("bri");
    expect(found.slice(0, 2)).toEqual([
      { name: "Brisbane", country: "AU", latitude: expect.any(Number), longitude: 153.02809, location: "Brisbane, AU" },
      { name: "Bristol", country: "GB", latitude: 51.45523, longitude: -2.59665, location: "Bristol, GB" },
    ]);
    expect(found).toHaveLength(8);
    for (const text of ["bri", "san", "b", "東"]) {
      const all = (await places(text, "&limit=20")).map(({ latitude, longitude }) => `${latitude} ${longitude}`);
      expect(new Set(all).size, text).toBe(all.length);
    }
    expect(await places("s", "&limit=20")).toHaveLength(20);
  });

  it("finds a town by any spelling of any of its names", async () => {
    for (const [text, location] of [
      ["ZÜRI", "Zürich, CH"],
      ["saint-petersb", "Saint Petersburg, RU"],
      ["Bombay", "Mumbai, IN"],
      ["東京", "Tokyo, JP"],
    ] as const)
      expect((await locations(text))[0], text).toBe(location);
    expect(await locations("no such place")).toEqual([]);
    expect(await locations("%")).toEqual([]);
    expect(await locations(" , ")).toEqual([]);
  });

  it("is limited to the country after a comma, once the country is complete", async () => {
    expect((await locations("lon"))[0]).toBe("London, GB");
    for (const text of ["lon, ca", "lon,Canada", "London, Ontario, CA"])
      expect((await locations(text))[0], text).toBe("London, CA");
    for (const text of ["lon,", "lon, cana"]) expect((await locations(text))[0], text).toBe("London, GB");
  });

  it("returns a unique location text for each town, also if several have the same name", async () => {
    const { token } = await signedUp();
    const found = [...(await places("springfield", "&limit=20")), ...(await places("washington", "&limit=20"))];
    expect(found.filter(({ location }) => location === "Springfield, US")).toHaveLength(1);
    const requested = [...new Set(found.map(({ location }) => location))];
    expect(requested).toHaveLength(found.length);
    const { locations: resolved } = await queued([spec({ num_access_points: 1, locations: requested })], token);
    expect(resolved.map(({ latitude, longitude }) => [latitude, longitude])).toEqual(
      found.map(({ latitude, longitude }) => [latitude, longitude]),
    );
  });

  it.each([
    ["?text=", "text", "string_too_short"],
    [`?text=${"x".repeat(101)}`, "text", "string_too_long"],
    ["", "text", "missing"],
    ["?text=a&limit=0", "limit", "greater_than"],
    ["?text=a&limit=21", "limit", "less_than_equal"],
  ])("gets 422 for %j", async (query, field, type) => {
    const response = await send("GET", `/api/v1/places${query}`, undefined, await adminToken());
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ detail: [{ loc: ["query", field], type }] });
  });
});

describe("a spin-up", () => {
  it("creates an agent at the right position for each access point, with the credentials in the broker message", async () => {
    const { token } = await signedUp();
    const { job_number, agents, ap_ids, locations } = await queued(
      [spec({ num_access_points: 3, locations: ["Bristol, UK", "51.5 -2.6"] }), spec({ access_point_type: "5G" })],
      token,
    );
    const prefix = job_number.slice(0, 8);
    expect(agents).toBe(5);
    expect(ap_ids).toEqual([
      `emu-wifi-${prefix}-0001`,
      `emu-wifi-${prefix}-0002`,
      `emu-wifi-${prefix}-0003`,
      `emu-5g-${prefix}-0001`,
      `emu-5g-${prefix}-0002`,
    ]);
    expect(locations).toEqual([
      {
        location: "Bristol, UK",
        place: "Bristol, GB",
        latitude: expect.closeTo(51.455, 2),
        longitude: expect.closeTo(-2.59, 1),
      },
      { location: "51.5 -2.6", latitude: 51.5, longitude: -2.6 },
    ]);
    const agent = (await (await send("GET", `/api/v1/agents/${ap_ids[1]}`, undefined, token)).json()) as {
      configuration: object;
      onboard: boolean;
    };
    expect(agent.configuration).toMatchObject({
      emulated: true,
      access_point_type: "WiFi",
      num_devices: 5,
      duration: 60,
      job_number,
      geolocation: { latitude: 51.5, longitude: -2.6 },
      commands: expect.arrayContaining(["power_off"]),
    });
    const [message] = await messagesOf(job_number);
    expect(message).toMatchObject({ job_number, part: 1, parts: 1 });
    const credentials = message?.emulators.flatMap((emulator) => emulator.agents) ?? [];
    expect(credentials.map(({ ap_id }) => ap_id)).toEqual(ap_ids);
    await tokenOf(ap_ids[0] ?? "", credentials[0]?.password ?? "", "agent");
  });

  it("keeps credentials out of the response and unencrypted tables", async () => {
    const { token } = await signedUp();
    const response = await spinUp([spec()], token);
    const text = await response.text();
    const { job_number } = JSON.parse(text) as { job_number: string };
    const [message] = await messagesOf(job_number);
    const [row] = await database.select().from(outbox).where(eq(outbox.jobNumber, job_number));
    for (const { password } of message?.emulators.flatMap(({ agents }) => agents) ?? []) {
      expect(password.length).toBeGreaterThan(40);
      expect(text).not.toContain(password);
      expect(row?.payload).not.toContain(password);
    }
  });

  it("sends up to a thousand access points in each message", async () => {
    const { token } = await signedUp();
    const { job_number, agents } = await queued(
      [spec({ num_access_points: 1000 }), spec({ access_point_type: "LiFi", num_access_points: 500 })],
      token,
    );
    expect(agents).toBe(1500);
    const messages = await messagesOf(job_number);
    expect(
      messages.map(({ part, parts, emulators }) => [part, parts, emulators.flatMap((e) => e.agents).length]),
    ).toEqual([
      [1, 2, 1000],
      [2, 2, 500],
    ]);
  });

  it.each([
    [[], ["emulators"], "too_short"],
    [[spec({ access_point_type: "wifi" })], ["emulators", 0, "access_point_type"], "string_pattern_mismatch"],
    [[spec({ num_access_points: 0 })], ["emulators", 0, "num_access_points"], "greater_than"],
    [[spec({ num_access_points: 1001 })], ["emulators", 0, "num_access_points"], "less_than_equal"],
    [[spec({ num_devices: 0 })], ["emulators", 0, "num_devices"], "greater_than"],
    [[spec({ duration: -1 })], ["emulators", 0, "duration"], "greater_than"],
    [[spec({ locations: [] })], ["emulators", 0, "locations"], "too_short"],
    [[spec(), spec({ locations: ["Bristol", "Nowhere At All"] })], ["emulators", 1, "locations", 1], "value_error"],
    [[spec({ locations: ["agent/#"] })], ["emulators", 0, "locations", 0], "value_error"],
    [[spec({ locations: ["x".repeat(100_000)] })], ["emulators", 0, "locations", 0], "value_error"],
    [[spec({ locations: ["a\u0000b"] })], ["emulators", 0, "locations", 0], "value_error"],
    [Array.from({ length: 11 }, () => spec({ num_access_points: 1000 })), ["emulators"], "value_error"],
  ])("gets 422 if the request is invalid: %#", async (emulators, path, type) => {
    const { token } = await signedUp();
    const response = await spinUp(emulators, token);
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ detail: [{ loc: ["body", ...path], type }] });
  });

  it("is limited to thirty a minute and forbidden to an app that is limited to some agents", async () => {
    const { token } = await newApp({ ap_ids: [uniqueName()] });
    expect((await spinUp([spec()], token)).status).toBe(403);
    const user = await signedUp();
    const statuses = [];
    for (let i = 0; i < 31; i++) statuses.push((await spinUp([spec({ num_access_points: 1 })], user.token)).status);
    expect(statuses).toEqual([...Array.from({ length: 30 }, () => 200), 429]);
  });
});

describe("an emulator job", () => {
  it("is published until an emulator claims it, accepts reports of that emulator only, and ends with its last part", async () => {
    const [user, app] = await Promise.all([signedUp(), newApp({ callbacks: true })]);
    const { job_number } = await queued([spec({ num_access_points: 1000 }), spec()], user.token);
    const from = (emulator: string, part: number, state: string) => ({ emulator, part, state });
    expect(await messagesOf(job_number)).toHaveLength(2);
    expect((await report(job_number, from("a", 1, "running"), app.token)).status).toBe(200);
    expect((await messagesOf(job_number)).map(({ part }) => part)).toEqual([2]);
    expect((await report(job_number, from("b", 1, "running"), app.token)).status).toBe(409);
    expect(await stateOf(job_number, user.token)).toBe("running");
    expect((await report(job_number, from("b", 2, "running"), app.token)).status).toBe(200);
    expect((await report(job_number, from("b", 2, "done"), app.token)).status).toBe(200);
    // A late report does not reopen an ended part. A repeated one has no effect.
    expect((await report(job_number, from("b", 2, "running"), app.token)).status).toBe(409);
    expect((await report(job_number, from("b", 2, "done"), app.token)).status).toBe(200);
    expect(await stateOf(job_number, user.token)).toBe("running");
    const list = await (await send("GET", "/api/v1/emulator/", undefined, user.token)).json();
    expect(list).toMatchObject([{ job_number, kind: "emulator", state: "running" }]);
    expect((await report(job_number, from("a", 1, "done"), app.token)).status).toBe(200);
    expect(await stateOf(job_number, user.token)).toBe("done");
    expect(await (await send("GET", "/api/v1/emulator/", undefined, user.token)).json()).toEqual([]);
    // Neither a late update nor a report without a part changes the state.
    const jobStore = createJobStore(database);
    expect(await jobStore.update(job_number, { state: "running" })).toBe("done");
    expect((await report(job_number, { x: 1 }, app.token)).status).toBe(200);
    expect(await stateOf(job_number, user.token)).toBe("done");
  });

  it("fails if one of its parts fails", async () => {
    const [user, app] = await Promise.all([signedUp(), newApp({ callbacks: true })]);
    const { job_number } = await queued([spec({ num_access_points: 1000 }), spec()], user.token);
    for (const [part, state] of [
      [1, "failed"],
      [2, "done"],
    ] as const)
      expect((await report(job_number, { emulator: "a", part, state }, app.token)).status).toBe(200);
    expect(await stateOf(job_number, user.token)).toBe("failed");
  });

  it("is audited with its start, its end and the removal of its access points", async () => {
    const [user, app] = await Promise.all([signedUp(), newApp({ callbacks: true })]);
    const entriesOf = async (jobNumber: string) => {
      const response = await send("GET", `/api/v1/audit/?object=job:${jobNumber}`, undefined, await adminToken());
      const entries = (await response.json()) as { actor: string; action: string; detail: unknown }[];
      return entries.map(({ actor, action, detail }) => [actor, action, detail]);
    };
    const by = `user:${user.username}`;
    const emulators = [spec({ num_access_points: 3 }), spec({ access_point_type: "LiFi" })];
    const { job_number: ended } = await queued(emulators, user.token);
    for (let i = 0; i < 2; i++) await report(ended, { emulator: "a", part: 1, state: "done" }, app.token);
    const about = { access_points: "3 WiFi, 2 LiFi", job_number: ended };
    const start = [by, "spin up", { ...about, outcome: "queued" }];
    const end = [`app:${app.appName}`, "emulation done", { ...about, outcome: "done" }];
    expect(await entriesOf(ended)).toEqual([end, start]);
    await send("DELETE", `/api/v1/emulator/${ended}`, undefined, user.token);
    const removed = [by, "remove emulated agents", { access_points: 5, job_number: ended, outcome: "removed" }];
    expect(await entriesOf(ended)).toEqual([removed, end, start]);

    const { job_number: stopped } = await queued(emulators, user.token);
    await send("DELETE", `/api/v1/emulator/${stopped}`, undefined, await adminToken());
    expect((await entriesOf(stopped)).map(([actor, action]) => [actor, action])).toEqual([
      [`admin:${settings.ADMIN_USERNAME}`, "emulation cancelled"],
      [`admin:${settings.ADMIN_USERNAME}`, "remove emulated agents"],
      [by, "spin up"],
    ]);
  });

  it("is done even if its stream has no space for the last message", async () => {
    const [user, app] = await Promise.all([signedUp(), newApp({ callbacks: true })]);
    const { job_number } = await queued([spec()], user.token);
    await runInDurableObject(env.JOB_STREAM.getByName(job_number), async (object) => {
      while ((await object.post([{ type: "emulator", data: encodeJson([]) }]))[0]?.outcome === "stored");
    });
    expect((await report(job_number, { emulator: "a", part: 1, state: "done" }, app.token)).status).toBe(429);
    expect(await stateOf(job_number, user.token)).toBe("done");
  });

  it("rejects also repeated messages after it was cancelled", async () => {
    const [user, app] = await Promise.all([signedUp(), newApp({ callbacks: true })]);
    const { job_number } = await queued([spec()], user.token);
    const running = { emulator: "a", part: 1, state: "running" };
    for (let i = 0; i < 2; i++) expect((await report(job_number, running, app.token, "k")).status).toBe(200);
    expect((await send("DELETE", `/api/v1/emulator/${job_number}`, undefined, user.token)).status).toBe(200);
    expect((await report(job_number, running, app.token, "k")).status).toBe(409);
  });

  it("and its agents can be removed by the owner or an administrator", async () => {
    const [owner, other, app] = await Promise.all([signedUp(), signedUp(), newApp({ callbacks: true })]);
    const { job_number, ap_ids } = await queued([spec()], owner.token);
    const { job_number: kept, ap_ids: keptIds } = await queued([spec()], owner.token);
    const remove = (job: string, token: string) => send("DELETE", `/api/v1/emulator/${job}`, undefined, token);
    expect((await remove(job_number, other.token)).status).toBe(403);
    expect((await remove(uniqueName(), other.token)).status).toBe(404);
    expect(await (await remove(job_number, owner.token)).json()).toMatchObject({ detail: "2 agents removed" });
    const exists = async (apId: string | undefined) =>
      (await send("GET", `/api/v1/agents/${apId}`, undefined, owner.token)).status;
    expect([await exists(ap_ids[0]), await exists(keptIds[0])]).toEqual([404, 200]);
    expect((await report(job_number, { emulator: "a", part: 1, state: "running" }, app.token)).status).toBe(409);
    expect(await stateOf(job_number, owner.token)).toBe("cancelled");
    expect(await messagesOf(job_number)).toEqual([]);
    expect((await remove(kept, await adminToken())).status).toBe(200);
  });
});
