import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Validator } from "@seriousme/openapi-schema-validator";
import { connectAsync } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { killUnderJobs } from "../../scripts/faults/jobs.ts";
import { stop } from "../../scripts/faults/kinds.ts";
import { killUnderTelemetry, PARTS } from "../../scripts/faults/telemetry.ts";
import { underLoad } from "../../scripts/faults/under-load.ts";
import { fuzz } from "../../scripts/fuzz/fuzz.ts";
import { logFindings } from "../../scripts/fuzz/log.ts";
import { nativePasswords } from "../../scripts/native-passwords.ts";
import { bundleBytes } from "../../scripts/stack/bundle-size.ts";
import { endedToken, makeAgents } from "../../scripts/trial/accounts.ts";
import { Product, run, until } from "../../scripts/trial/product.ts";
import { Target } from "../../scripts/trial/target.ts";
import { createDatabase } from "../../src/accounts/database.ts";
import { createUserStore } from "../../src/accounts/user-store.ts";
import { runScript } from "../support/run-script.ts";
import { SECRET_MARK, SECRETS } from "../support/secret-mark.ts";

const ADMIN = { username: "root@example.com", password: `${SECRET_MARK} administrator's password` };
const USER = { username: "first@example.com", password: `${SECRET_MARK} first user's password` };

/** On a busy machine a part that was killed takes its time to come back, and so does what precedes its end. */
const PATIENCE_MS = 90_000;

const ENROLMENT_TOKEN = `${SECRET_MARK}-enrolment-token`;

/** One data folder for both forms: what was written under the first must be there under the second. */
const dataDir = mkdtempSync(join(tmpdir(), "controller-e2e-"));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

/** Given out by the first run, and shown to the second, whose key is another. */
let earlierToken = "";

const admin = (args: string[], password = "") => runScript("admin", args, { DATA_DIR: dataDir }, password);

const keyOf = (token: string): string =>
  (JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()) as { kid: string }).kid;

/** Passes connections on to the service, and destroys the first one that has brought so many bytes from there. */
async function cuttingProxy(port: number, afterBytes: number) {
  let cuts = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = createConnection(port, "127.0.0.1");
    const destroy = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) sockets.add(socket.on("error", destroy).on("close", destroy));
    client.pipe(upstream).pipe(client);
    upstream.on("data", () => {
      if (cuts > 0 || upstream.bytesRead < afterBytes) return;
      cuts++;
      destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe.each(["dev", "start"] as const)("npm run %s", (form) => {
  // The forms differ in the Worker alone: what is about the other parts, or takes them down, is tried in one of them.
  const isProduction = form === "start";
  const inProduction = it.runIf(isProduction);
  let product: Product;

  const call = (path: string, init?: RequestInit) =>
    fetch(`${product.url}${path}`, { signal: AbortSignal.timeout(20_000), ...init });
  const postJson = (path: string, body: object) =>
    call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const logIn = (account: typeof USER) =>
    call("/api/v1/token/?login_type=user", { method: "POST", body: new URLSearchParams(account) });
  /** Signs up, or has the administrator create the account if sign-up is closed. */
  const makeUser = async (account: typeof USER, token?: string): Promise<Response> => {
    if (!isProduction) return await postJson("/api/v1/users/signup", account);
    const headers = { Authorization: `Bearer ${token ?? (await adminToken())}`, "Content-Type": "application/json" };
    return await call("/api/v1/users/", {
      method: "POST",
      headers,
      body: JSON.stringify({ ...account, roles: ["user"] }),
    });
  };
  const adminToken = async (): Promise<string> =>
    ((await (await logIn(ADMIN)).json()) as { access_token: string }).access_token;
  const me = async (account: typeof USER) => {
    const { access_token } = (await (await logIn(account)).json()) as { access_token: string };
    return await call("/api/v1/users/me", { headers: { Authorization: `Bearer ${access_token}` } });
  };

  const untilReadyzAnswers = async (status: number): Promise<unknown> => {
    let body: unknown;
    await until(async () => {
      const response = await call("/readyz");
      body = await response.json();
      return response.status === status;
    }, PATIENCE_MS);
    return body;
  };
  const untilMissed = async (part: string): Promise<void> =>
    expect(await untilReadyzAnswers(503)).toMatchObject({ status: "unavailable", parts: { [part]: "down" } });

  beforeAll(async () => {
    // Both steps of a change of keys, between the two runs.
    for (const step of isProduction ? ["Step 1 of 2", "Step 2 of 2"] : []) {
      expect((await admin(["rotate-keys"])).output).toContain(step);
    }
    product = await Product.run(form, dataDir, {
      ADMIN_USERNAME: ADMIN.username,
      ADMIN_PASSWORD: ADMIN.password,
      ENROLMENT_TOKEN,
    });
  });

  // The last test ends the product; this is for a run in which that one was not reached.
  afterAll(async () => {
    if (product?.isRunning) await product.interrupt();
  });

  it("is ready, with every part up", async () => {
    expect(await untilReadyzAnswers(200)).toMatchObject({
      status: "ready",
      parts: { libsql: "up", clickhouse: "up", broker: "up", passwords: "up" },
    });
  });

  it("lets the first administrator in, whose password Node hashed and the Worker checks", async () => {
    expect(await (await me(ADMIN)).json()).toMatchObject({ username: ADMIN.username, roles: "admin" });
  });

  it(isProduction ? "still knows the user of an earlier run" : "signs up, logs in and knows its user", async () => {
    if (!isProduction) expect((await postJson("/api/v1/users/signup", USER)).status).toBe(200);
    else expect((await postJson("/api/v1/users/signup", USER)).status).toBe(403);
    expect(await (await me(USER)).json()).toMatchObject({ username: USER.username, roles: "user" });
  });

  it("signs with the newest key, and knows tokens of the one before", async () => {
    const { access_token } = (await (await logIn(USER)).json()) as { access_token: string };
    const { keys } = (await (await call("/.well-known/jwks.json")).json()) as { keys: { kid: string }[] };
    expect(keyOf(access_token)).toBe(keys[0]?.kid);
    expect(keys).toHaveLength(isProduction ? 2 : 1);
    if (!isProduction) earlierToken = access_token;
    expect(keyOf(earlierToken)).toBe(keys.at(-1)?.kid);
    const headers = { Authorization: `Bearer ${earlierToken}` };
    expect((await call("/api/v1/users/me", { headers })).status).toBe(200);
  });

  /** The status of the service's own answer. On a busy machine wrangler's proxy answers some by itself, with a 500 that bears no request id. */
  const answered = async (ask: () => Promise<Response>): Promise<number> => {
    for (let tries = 0; ; tries++) {
      const response = await ask();
      const isOwn = isProduction || response.headers.has("X-Request-Id");
      if (isOwn || tries === 5) return response.status;
      await sleep(200);
    }
  };

  it("answers a crowd that comes at once, each in a request of its own", async () => {
    for (let round = 0; round < 3; round++) {
      const { access_token } = (await (await logIn(USER)).json()) as { access_token: string };
      const headers = { Authorization: `Bearer ${access_token}` };
      const crowd = Array.from({ length: 100 }, () => answered(() => call("/api/v1/users/me", { headers })));
      expect(new Set(await Promise.all(crowd))).toEqual(new Set([200]));
    }
    const strangers = Array.from({ length: 60 }, (_, i) =>
      answered(() => logIn({ username: `stranger-${i}@example.com`, password: USER.password })),
    );
    expect(new Set(await Promise.all(strangers))).toEqual(new Set([401]));
  });

  it("stores what several agents post at the same moment, although one of them is gone before the answer", async () => {
    const prefix = `${form}-together`;
    const [first, ...others] = await makeAgents(dataDir, prefix, 12);
    const body = JSON.stringify({ payload: { value: 1 } });
    const { hostname, port } = new URL(product.url);
    // The call to the store is made by whoever comes first, for all of them.
    const leaving = createConnection(Number(port), hostname);
    await new Promise((resolve) => leaving.once("connect", resolve));
    leaving.write(
      `POST /api/v1/agent_update/update HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${first?.token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const answers = others.map(async ({ token }) => {
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      return (await call("/api/v1/agent_update/update", { method: "POST", headers, body })).status;
    });
    await sleep(3);
    leaving.destroy();
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
  });

  inProduction("obeys the admin command", async () => {
    const account = { username: `${form}-by-command@example.com`, password: `${SECRET_MARK} by command` };
    expect(await admin(["create", account.username, "--role", "user"], account.password)).toMatchObject({ code: 0 });
    expect(await admin(["create", account.username], account.password)).toMatchObject({
      code: 1,
      output: "User already exists\n",
    });
    expect(await (await me(account)).json()).toMatchObject({ roles: "user" });
    expect(await admin(["promote", account.username])).toMatchObject({ code: 0 });
    expect(await (await me(account)).json()).toMatchObject({ roles: "admin" });
    const anew = { ...account, password: `${SECRET_MARK} anew` };
    expect(await admin(["reset-password", account.username], `${anew.password}\n`)).toMatchObject({ code: 0 });
    expect([(await logIn(account)).status, (await logIn(anew)).status]).toEqual([401, 200]);
    expect((await admin(["list"])).output).toMatch(new RegExp(`${account.username} +admin\n`));
    expect(await admin(["create", "x@example.com"], "short")).toMatchObject({
      code: 1,
      output: "A password has 8 to 128 characters.\n",
    });
  });

  inProduction(
    "hashes passwords of every script so that the native module accepts them, and nothing like them",
    async () => {
      const { urls } = JSON.parse(readFileSync(join(dataDir, "stack.json"), "utf8")) as {
        urls: Record<string, string>;
      };
      const users = createUserStore(createDatabase({ url: urls.libsql ?? "" }));
      const samples = [
        "correct horse",
        "Zürich-Straße",
        "пароль-пароль",
        "密码密码密码密码",
        "🔑🔒🔑🔒🔑🔒🔑🔒",
        "nul\0nul\0nul",
        "x".repeat(128),
      ];
      for (const [i, password] of samples.entries()) {
        const username = `${form}-script-${i}@example.com`;
        expect((await makeUser({ username, password })).status).toBe(200);
        const hash = (await users.find(username))?.passwordHash ?? "";
        expect(await nativePasswords.verify(hash, password)).toBe(true);
        expect(await nativePasswords.verify(hash, `${password.slice(0, -1)}é`)).toBe(false);
      }
    },
  );

  it("sends a link for a forgotten password into the mail folder, and the link works", async () => {
    const account = { username: `${form}-forgetful@example.com`, password: `${SECRET_MARK} forgotten` };
    await makeUser(account);
    expect((await postJson("/api/v1/users/password-recovery", { username: account.username })).status).toBe(200);
    const folder = join(dataDir, "mail");
    const letters = () => readdirSync(folder).filter((file) => file.includes(account.username));
    await until(() => letters().length > 0);
    const letter = readFileSync(join(folder, letters()[0] ?? ""), "utf8");
    const [, link = "", token] = /(http:\S+)\/#\/reset-password\/([\w-]+)/.exec(letter) ?? [];
    expect(link).toBe(product.url);
    expect((await fetch(link)).headers.get("Content-Type")).toContain("text/html");
    const anew = { username: account.username, password: `${SECRET_MARK} remembered` };
    expect((await postJson("/api/v1/users/reset-password", { token, new_password: anew.password })).status).toBe(200);
    expect([(await logIn(account)).status, (await logIn(anew)).status]).toEqual([401, 200]);
    expect(product.output).not.toContain(token);
  });

  inProduction("keeps every account that it said it made, whole, although sqld is killed meanwhile", async () => {
    const names = Array.from({ length: 24 }, (_, i) => `${form}-survivor-${i}@example.com`);
    const statuses = new Map<string, number>();
    const token = await adminToken();
    const killing = (async () => {
      await until(() => statuses.size >= 6);
      process.kill(product.pidOf("sqld"), "SIGKILL");
    })();
    const queue = names.values();
    const worker = async () => {
      for (const username of queue) {
        const response = await makeUser({ username, password: `${SECRET_MARK} survivor` }, token);
        statuses.set(username, response.status);
      }
    };
    await Promise.all([worker(), worker(), worker(), killing]);
    await untilReadyzAnswers(200);
    const answered = (status: number) => names.filter((name) => statuses.get(name) === status);
    expect(answered(200).length + answered(503).length).toBe(names.length);
    expect(answered(503).length).toBeGreaterThan(0);

    const { access_token } = (await (await logIn(ADMIN)).json()) as { access_token: string };
    const headers = { Authorization: `Bearer ${access_token}` };
    const users = (await (await call("/api/v1/users/", { headers })).json()) as { username: string }[];
    const there = users.map(({ username }) => username).filter((username) => names.includes(username));
    expect(there).toEqual(expect.arrayContaining(answered(200)));
    for (const username of names) {
      const query = new URLSearchParams({ object: `user:${username}` });
      const entries = (await (await call(`/api/v1/audit/?${query}`, { headers })).json()) as unknown[];
      expect(entries).toHaveLength(there.includes(username) ? 1 : 0);
    }
  });

  it("describes itself in valid OpenAPI, and on a page", async () => {
    const document = (await (await call("/openapi.json")).json()) as Record<string, unknown>;
    expect(await new Validator().validate(document)).toEqual({ valid: true });
    expect(await (await call("/docs")).text()).toContain("API reference");
  });

  it.each(isProduction ? ["mqtt", "ws"] : ["ws"])(
    "has a broker over %s that lets agents and services in by their tokens",
    async (protocol) => {
      const { access_token: admin } = (await (await logIn(ADMIN)).json()) as { access_token: string };
      const password = `${SECRET_MARK} of a device`;
      const apId = `${form}-${protocol}`;
      const appName = `${form}-${protocol}-service`;
      const create = (path: string, body: object) =>
        call(`/api/v1/${path}/`, {
          method: "POST",
          headers: { Authorization: `Bearer ${admin}`, "Content-Type": "application/json" },
          body: JSON.stringify(body),
        });
      await create("agents", { ap_id: apId, password, configuration: {} });
      await create("third_party_apps", { app_name: appName, api_key: password, permissions: { broker: true } });
      const connect = async (username: string, loginType: string) => {
        const body = new URLSearchParams({ username, password });
        const response = await call(`/api/v1/token/?login_type=${loginType}`, { method: "POST", body });
        const { access_token } = (await response.json()) as { access_token: string };
        const port = protocol === "mqtt" ? product.mqttPort : product.mqttWsPort;
        return await connectAsync(`${protocol}://127.0.0.1:${port}`, {
          username,
          password: access_token,
          reconnectPeriod: 0,
        });
      };
      const service = await connect(appName, "third_party_app");
      const agent = await connect(apId, "agent");
      const received = new Promise<string>((resolve) =>
        service.on("message", (topic, payload) => resolve(`${topic} ${payload}`)),
      );
      await service.subscribeAsync("agent/+/data", { qos: 1 });
      await agent.publishAsync(`agent/${apId}/data`, '{"x":7}', { qos: 1 });
      expect(await received).toBe(`agent/${apId}/data {"x":7}`);
      // The bridge hears it too, and has it stored.
      const headers = { Authorization: `Bearer ${admin}` };
      await until(async () => {
        const response = await call(`/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=x`, { headers });
        return (await response.text()).includes('"value":7');
      });
      // A connection ends with its account, or with what that may do.
      const closed = Promise.all(
        [agent, service].map((client) => new Promise<void>((resolve) => client.once("close", () => resolve()))),
      );
      const change = (method: string, path: string, body?: object) =>
        call(`/api/v1/${path}`, {
          method,
          headers: { ...headers, "Content-Type": "application/json" },
          body: body === undefined ? null : JSON.stringify(body),
        });
      expect((await change("DELETE", `agents/${apId}`)).status).toBe(200);
      expect((await change("PUT", `third_party_apps/${appName}`, { permissions: {} })).status).toBe(200);
      expect(await Promise.race([closed.then(() => "closed"), sleep(5_000, "open", { ref: false })])).toBe("closed");
    },
  );

  inProduction.each(["HTTP", "MQTT"])("shows what the reference agent reports over %s", async (channel) => {
    const apId = `${form}-reference-${channel}`;
    const agent = spawn("npm", ["run", "--silent", "agent"], {
      env: {
        ...process.env,
        SERVICE_URL: product.url,
        AP_ID: apId,
        AP_PASSWORD: `${SECRET_MARK} reference`,
        ENROLMENT_TOKEN,
        INTERVAL: "0.2",
        LATITUDE: "51.4545",
        LONGITUDE: "-2.5879",
        ...(channel === "MQTT" && { MQTT_URL: `mqtt://127.0.0.1:${product.mqttPort}` }),
      },
    });
    const ended = new Promise((resolve) => agent.once("exit", resolve));
    try {
      const { access_token } = (await (await logIn(ADMIN)).json()) as { access_token: string };
      const headers = { Authorization: `Bearer ${access_token}` };
      let answer = { series: [{ points: [] }] };
      await until(async () => {
        const path = `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=memory_used_pct,network.rx_bytes`;
        const response = await call(path, { headers });
        if (response.ok) answer = (await response.json()) as typeof answer;
        return (answer.series[0]?.points.length ?? 0) >= 3;
      });
      expect(answer.series.map(({ points }) => points.length > 0)).toEqual([true, true]);
      await until(async () => {
        const agents = (await (await call("/api/v1/agents/", { headers })).json()) as {
          ap_id: string;
          online: boolean;
          configuration: object;
        }[];
        const agent = agents.find(({ ap_id }) => ap_id === apId);
        expect(agent?.configuration).toMatchObject({
          interval: 0.2,
          geolocation: { latitude: 51.4545, longitude: -2.5879 },
        });
        // On a busy machine a sample may take longer than three of its intervals.
        return agent?.online ?? false;
      });
      if (channel === "MQTT") {
        const sent = await call(`/api/v1/send_command?agent_id=${apId}&command=interval%200.5`, {
          method: "POST",
          headers,
        });
        const { websocket } = (await sent.json()) as { websocket: string };
        const socket = new WebSocket(`${product.url.replace("http", "ws")}${websocket}`, { headers });
        const answer = await new Promise((resolve, reject) => {
          socket.once("message", (data) => resolve(JSON.parse(String(data))));
          socket.once("error", reject);
        });
        socket.close();
        expect(answer).toMatchObject({
          type: "command",
          final: true,
          data: [{ status: "done", data: { command: "interval 0.5", interval: 0.5 } }],
        });
      }
    } finally {
      agent.kill("SIGTERM");
      await ended;
    }
  });

  const althoughCut = isProduction ? ", although the connection is cut in the middle" : "";
  it(`streams an agent's data to a client, all of it and once${althoughCut}`, async () => {
    const [count, written, cuts] = isProduction ? [8_000, "16,008", 1] : [1_000, "2,001", 0];
    const account = { username: `${form}-streamed`, password: `${SECRET_MARK} streamed` };
    const enrolled = { ap_id: account.username, password: account.password, configuration: {} };
    const headers = { Authorization: `Bearer ${ENROLMENT_TOKEN}`, "Content-Type": "application/json" };
    await call("/api/v1/agents/public", { method: "POST", headers, body: JSON.stringify(enrolled) });
    const body = new URLSearchParams(account);
    const login = await call("/api/v1/token/?login_type=agent", { method: "POST", body });
    headers.Authorization = `Bearer ${((await login.json()) as { access_token: string }).access_token}`;
    const startMs = Date.now() - 3_600_000;
    for (let from = 0; from < count; from += 1_000) {
      const samples = Array.from({ length: 1_000 }, (_, i) => ({
        ts: startMs + (from + i) * 10,
        payload: { x: from + i, y: (from + i) / 7, ...(i === 0 && { note: `"${from}",\nand so on` }) },
      }));
      const report = JSON.stringify({ samples });
      expect((await call("/api/v1/agent_update/update", { method: "POST", headers, body: report })).status).toBe(200);
    }

    // Compressed, the eight thousand are about twice that.
    const proxy = await cuttingProxy(Number(new URL(product.url).port), 60_000);
    try {
      const range = ["--from", new Date(startMs).toISOString(), "--to", new Date(startMs + 80_000).toISOString()];
      const file = join(dataDir, `${form}-streamed.csv`);
      const { code, output } = await run(
        "npm",
        ["run", "--silent", "stream", "--", "--agent", account.username, ...range, "--format", "csv", "--output", file],
        {
          SERVICE_URL: proxy.url,
          STREAM_USER: account.username,
          STREAM_PASSWORD: account.password,
          LOGIN_TYPE: "agent",
        },
      );
      expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining(`Rows written: ${written}.`) });
      expect(output.includes("Connection lost")).toBe(cuts > 0);
      expect(proxy.cuts).toBe(cuts);
      const at = (i: number) => new Date(startMs + i * 10).toISOString();
      const rows = (field: string, value: (i: number) => string, step = 1) =>
        Array.from({ length: count / step }, (_, k) => `${at(k * step)},${field},${value(k * step)}\n`).join("");
      const notes = rows("note", (i) => `"""${i}"",\nand so on"`, 1_000);
      const expected = `time,field,value\n${rows("x", String)}${rows("y", (i) => String(i / 7))}${notes}`;
      expect(readFileSync(file, "utf8")).toBe(expected);
    } finally {
      await proxy.close();
    }
  });

  inProduction("runs access points that are spun up, through the end of their emulator, and they obey", async () => {
    const { access_token } = (await (await logIn(ADMIN)).json()) as { access_token: string };
    const headers = { Authorization: `Bearer ${access_token}`, "Content-Type": "application/json" };
    const spec = { num_access_points: 2, locations: ["Bristol, UK"], num_devices: 10, duration: 30 };
    const emulators = ["5G", "WiFi", "LiFi"].map((access_point_type) => ({ access_point_type, ...spec }));
    const response = await call("/api/v1/emulator/spinup", {
      method: "POST",
      headers,
      body: JSON.stringify({ emulators }),
    });
    const { job_number, websocket, ap_ids } = (await response.json()) as {
      job_number: string;
      websocket: string;
      ap_ids: string[];
    };
    const messages: { final: boolean; data: { state: string; samples: number }[] }[] = [];
    const socket = new WebSocket(`${product.url.replace("http", "ws")}${websocket}`, { headers });
    socket.on("message", (data) => messages.push(JSON.parse(String(data))));
    const loads = async (apId: string | undefined) => {
      const path = `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=load`;
      const { series } = (await (await call(path, { headers })).json()) as {
        series: { points: { value: number }[] }[];
      };
      return series[0]?.points.map(({ value }) => value) ?? [];
    };
    for (const apId of ap_ids) await until(async () => (await loads(apId)).length >= 2);

    process.kill(product.pidOf("emulator"), "SIGKILL");
    await product.says(/emulator ended unexpectedly \(SIGKILL\)[\s\S]*emulator is back/);
    const path = `/api/v1/send_command?agent_id=${ap_ids[0]}&command=power_off`;
    const { job_number: command } = (await (await call(path, { method: "POST", headers })).json()) as {
      job_number: string;
    };
    await until(async () => (await loads(ap_ids[0])).at(-1) === 0);
    const job = (await (await call(`/api/v1/jobs/${command}`, { headers })).json()) as { state: string };
    expect(job.state).toBe("done");

    await until(() => messages.some(({ final }) => final), 60_000);
    socket.close();
    expect(messages.at(-1)?.data[0]).toMatchObject({ state: "done", agents: 6 });
    const taken = messages.at(-1)?.data[0]?.samples ?? 0;
    // What the broker has taken comes, through the end of the emulator.
    await until(async () => {
      const counts = await Promise.all(ap_ids.map(async (apId) => (await loads(apId)).length));
      return counts.reduce((sum, count) => sum + count, 0) >= taken;
    });
    const removed = await call(`/api/v1/emulator/${job_number}`, { method: "DELETE", headers });
    expect(await removed.json()).toMatchObject({ detail: "6 agents removed" });
  });

  inProduction("passes the smoke run, which leaves no account behind, also when it is cut short", async () => {
    const args = ["run", "--silent", "smoke", "--", "--url", product.url];
    const env = { SMOKE_USERNAME: ADMIN.username, SMOKE_PASSWORD: ADMIN.password };
    const more = ["--mqtt", `mqtt://127.0.0.1:${product.mqttPort}`, "--emulator"];
    const { code, output } = await run("npm", [...args, ...more], env);
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/All is well: \d+ steps/) });
    expect(output).not.toContain(ADMIN.password);

    const cutShort = spawn("npm", args, { env: { ...process.env, ...env }, detached: true });
    const ended = new Promise((resolve) => cutShort.once("exit", resolve));
    cutShort.stdout.on("data", (chunk: Buffer) => {
      if (chunk.includes("log in") && cutShort.pid !== undefined) process.kill(-cutShort.pid, "SIGINT");
    });
    expect(await ended).toBe(130);

    const { access_token } = (await (await logIn(ADMIN)).json()) as { access_token: string };
    const headers = { Authorization: `Bearer ${access_token}` };
    for (const kind of ["users", "agents"]) {
      expect(await (await call(`/api/v1/${kind}/`, { headers })).text()).not.toContain("smoke-");
    }
  });

  inProduction.each(PARTS)(
    "loses and doubles no sample that was acknowledged although the %s is killed meanwhile",
    async (part) => {
      const [outcome] = await Promise.all([
        killUnderTelemetry(product, part, 1),
        // The slowest to come back is not killed again, further down.
        part === "clickhouse" && untilMissed("clickhouse"),
      ]);
      expect(outcome).toMatchObject({ lost: 0, doubled: 0, accountFailures: 0 });
      expect(outcome.acknowledgedHttp).toBeGreaterThan(0);
      expect(outcome.acknowledgedMqtt).toBeGreaterThan(0);
      expect(outcome.recoveredMs).toHaveLength(1);
    },
  );

  inProduction(
    "brings every callback that was acknowledged to every reader, in order, although workerd is killed meanwhile",
    async () => {
      const outcome = await killUnderJobs(product, 1);
      expect(outcome).toMatchObject({ lost: 0, doubled: 0, inversions: 0, holes: 0, incomplete: 0 });
      expect(outcome.acknowledged).toBeGreaterThan(0);
      expect(outcome.recoveredMs).toHaveLength(1);
    },
  );

  inProduction(
    "keeps its word about samples, callbacks, commands and accounts although ClickHouse hangs for a while",
    async () => {
      const stage = { product, target: () => new Target(product), pidOf: (part: string) => product.pidOf(part) };
      // How soon it answers meanwhile is measured below, without a load.
      const fault = { ...stop("clickhouse", 4_000), promises: { exact: true, prompt: false } };
      const { acknowledged, lost, doubled, broken } = await underLoad(stage, fault);
      expect({ lost, doubled, broken }).toEqual({ lost: 0, doubled: 0, broken: [] });
      expect(acknowledged).toBeGreaterThan(0);
    },
  );

  inProduction.each([
    ["sqld", "libsql"],
    ["broker", "broker"],
    ["passwords", "passwords"],
  ])("goes on without %s when it is killed, says so, and gets it back", async (part, name) => {
    const killed = product.pidOf(part);
    process.kill(killed, "SIGKILL");
    await untilMissed(name);
    expect((await call("/healthz")).status).toBe(200);
    await product.says(new RegExp(`${part} ended unexpectedly \\(SIGKILL\\)[^]*${part} is back`));
    await untilReadyzAnswers(200);
    expect(product.pidOf(part)).not.toBe(killed);
    expect((await me(USER)).status).toBe(200);
  });

  inProduction.each([
    ["sqld", "libsql"],
    ["clickhouse", "clickhouse"],
    ["broker", "broker"],
    ["passwords", "passwords"],
  ])("answers within two seconds although %s hangs", async (part, name) => {
    const pid = product.pidOf(part);
    const token = await adminToken();
    process.kill(pid, "SIGSTOP");
    try {
      const startedMs = Date.now();
      const [ready, created, health] = await Promise.all([
        call("/readyz"),
        makeUser({ username: `${part}-${form}@example.com`, password: "long enough" }, token),
        call("/healthz"),
      ]);
      expect(Date.now() - startedMs).toBeLessThan(2_000);
      expect(ready.status).toBe(503);
      expect(await ready.json()).toMatchObject({ detail: `Down: ${name}` });
      expect(created.status).toBe(["sqld", "passwords"].includes(part) ? 503 : 200);
      expect(health.status).toBe(200);
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await untilReadyzAnswers(200);
  });

  inProduction("refuses logins, and nothing else, while nobody hashes passwords", async () => {
    const headers = { Authorization: `Bearer ${earlierToken}` };
    process.kill(product.pidOf("passwords"), "SIGKILL");
    const startedMs = Date.now();
    const [login, me] = await Promise.all([logIn(USER), call("/api/v1/users/me", { headers })]);
    expect(Date.now() - startedMs).toBeLessThan(2_000);
    expect([login.status, login.headers.get("Retry-After"), me.status]).toEqual([503, "2", 200]);
    await until(async () => (await logIn(USER)).status === 200);
  });

  inProduction.each([
    1, // The same each time,
    randomInt(2 ** 31), // and others each time: the title tells which.
  ])("holds to its document whatever it is asked for, and by whom (seed %i)", async (seed) => {
    const said = product.output.length;
    const tokens = { ended: await endedToken(dataDir, ADMIN.username), enrolment: ENROLMENT_TOKEN };
    const options = { url: product.url, admin: ADMIN, seed, seconds: 5, perSecond: 100, tokens };
    const { requests, findings } = await fuzz(options);
    expect([...findings, ...logFindings(product.output.slice(said))]).toEqual([]);
    expect(requests).toBeGreaterThan(50);
  });

  it("lets nobody ask its accounts database without a token", async () => {
    const { urls } = JSON.parse(readFileSync(join(dataDir, "stack.json"), "utf8")) as { urls: { libsql: string } };
    const ask = (url: string) => createUserStore(createDatabase({ url })).administrators();
    expect(await ask(urls.libsql)).toContain(ADMIN.username);
    await expect(ask(new URL(urls.libsql).origin)).rejects.toThrow();
  });

  it("writes nothing that others on this machine could read", () => {
    const folders = ["broker", "clickhouse", "mail", "sqld", "worker"].map((name) => join(dataDir, name));
    const files = folders.flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }));
    const open = files.filter(({ parentPath, name }) => {
      const stat = lstatSync(join(parentPath, name), { throwIfNoEntry: false });
      return stat !== undefined && !stat.isSymbolicLink() && (stat.mode & 0o077) !== 0;
    });
    expect(open.map(({ parentPath, name }) => join(parentPath, name))).toEqual([]);
  });

  inProduction("runs a Worker of less than 250 KiB gzip", () => {
    const bytes = bundleBytes(join(dataDir, "build"));
    expect(bytes).toBeGreaterThan(50 * 1024);
    expect(bytes).toBeLessThan(250 * 1024);
  });

  it("keeps passwords, tokens and keys out of what it prints", async () => {
    expect((await me(USER)).status).toBe(200);
    expect(product.output).not.toMatch(SECRETS);
    expect(product.output).not.toContain('"d":');
  });

  it("stops on Ctrl-C within five seconds, although connections are open, and leaves no process", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${product.mqttWsPort}`, "mqtt");
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("open", resolve));
    expect((await call("/healthz")).status).toBe(200);
    expect(product.processes().length).toBeGreaterThan(3);

    const { exitCode, tookMs } = await product.interrupt();
    expect(exitCode).toBe(0);
    expect(tookMs).toBeLessThan(5_000);
    expect(product.processes()).toEqual([]);
    expect(product.output).toMatch(/Stopping\.\nStopped\.\n$/);
  });
});
