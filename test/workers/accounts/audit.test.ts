import { env } from "cloudflare:test";
import { waitUntil } from "cloudflare:workers";
import { eq, gt, type SQL, sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { audit } from "../../../src/accounts/account-tables.ts";
import { pruneAuditTrail } from "../../../src/accounts/audit.ts";
import { type ChangedObjects, concernedBy, createAuditFeed } from "../../../src/accounts/audit-feed.ts";
import { createJobExpiry } from "../../../src/delivery/job-expiry.ts";
import { createJobStore } from "../../../src/jobs/job-store.ts";
import { createStreamClient } from "../../../src/jobs/stream/stream-client.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, newAgent, PASSWORD, send, settings, signedUp, uniqueEmail, uniqueName } from "../support.ts";

interface Entry {
  id: number;
  at: string;
  request_id: string;
  actor: string;
  action: string;
  object: string;
  detail: Record<string, unknown> | null;
}

const trail = async (query: string) =>
  (await (await send("GET", `/api/v1/audit/?${query}`, undefined, await adminToken())).json()) as Entry[];
const summary = (entries: Entry[]) => entries.map(({ actor, action, object }) => [actor, action, object]);

describe("the audit trail", () => {
  const admin = `admin:${settings.ADMIN_USERNAME}`;

  it("records every change of an account with its actor and request, newest first", async () => {
    const token = await adminToken();
    const username = uniqueEmail();
    const path = `/api/v1/users/${encodeURIComponent(username)}`;
    const created = await send("POST", "/api/v1/users/", { username, password: PASSWORD, roles: ["user"] }, token);
    await send("PUT", path, { password: PASSWORD }, token);
    await send("PUT", path, { roles: ["user", "admin"], password: PASSWORD }, token);
    await send("PUT", path, { roles: null }, token);
    await send("DELETE", path, undefined, token);
    await send("DELETE", path, undefined, token);
    const entries = await trail(`object=${encodeURIComponent(`user:${username}`)}`);
    expect(summary(entries)).toEqual([
      [admin, "delete", `user:${username}`],
      [admin, "change password and change roles", `user:${username}`],
      [admin, "change password", `user:${username}`],
      [admin, "create", `user:${username}`],
    ]);
    expect(entries.at(-1)?.request_id).toBe(created.headers.get("X-Request-Id"));
  });

  it("records changes of agents and apps, and of users who change their own account", async () => {
    const token = await adminToken();
    const name = uniqueName();
    await send("POST", "/api/v1/agents/", { ap_id: name, password: PASSWORD, configuration: {} }, token);
    await send("PUT", `/api/v1/agents/${name}`, { configuration: { a: 1 } }, token);
    await send("POST", "/api/v1/third_party_apps/", { app_name: name, api_key: PASSWORD, permissions: {} }, token);
    expect(summary(await trail(`object=agent:${name}`)).map(([, action]) => action)).toEqual(["configure", "create"]);
    expect(summary(await trail(`object=app:${name}`))).toEqual([[admin, "create", `app:${name}`]]);
    const { username, token: own } = await signedUp();
    await send("DELETE", `/api/v1/users/${encodeURIComponent(username)}`, undefined, own);
    expect(summary(await trail(`object=${encodeURIComponent(`user:${username}`)}`))).toEqual([
      [`user:${username}`, "delete", `user:${username}`],
      ["anyone", "create", `user:${username}`],
    ]);
    expect(summary(await trail(`actor=${encodeURIComponent(`user:${username}`)}`))).toHaveLength(1);
  });

  it("records nothing for a rejected request", async () => {
    const { username } = await signedUp();
    await send("POST", "/api/v1/users/", { username, password: PASSWORD, roles: ["admin"] }, await adminToken());
    expect(summary(await trail(`object=${encodeURIComponent(`user:${username}`)}`))).toEqual([
      ["anyone", "create", `user:${username}`],
    ]);
  });

  it("returns pages", async () => {
    const [first, second, third] = await trail("limit=3");
    expect(await trail(`limit=2&before=${first?.id}`)).toEqual([second, third]);
    expect((await send("GET", "/api/v1/audit/?limit=1001", undefined, await adminToken())).status).toBe(422);
  });

  it("removes old entries when new ones arrive", async () => {
    const database = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" });
    const auditFeed = createAuditFeed(database, () => waitUntil(pruneAuditTrail(database, 10_000)));
    const { mark } = await auditFeed.since(undefined);
    const entry = (object: string, ageMs: number) => ({
      object,
      at: new Date(Date.now() - ageMs),
      requestId: "",
      actor: "console:",
      action: "create",
    });
    const names = Array.from({ length: 600 }, () => uniqueName());
    const fresh = uniqueName();
    await database.insert(audit).values([...names.map((name) => entry(name, 11_000)), entry(fresh, 0)]);
    const remaining = async () => {
      await auditFeed.since(mark);
      const rows = await database.select({ object: audit.object }).from(audit).where(gt(audit.id, mark));
      return rows.map(({ object }) => object);
    };
    await expect.poll(remaining).toEqual([fresh]);
    await database.delete(audit).where(gt(audit.id, mark));
  });
});

describe("the audit trail of commands", () => {
  const command = (apId: string, text: string, token: string) =>
    send("POST", `/api/v1/send_command?agent_id=${apId}&command=${encodeURIComponent(text)}`, undefined, token);
  const jobOf = async (response: Response) => ((await response.json()) as { job_number: string }).job_number;
  const ofCommands = async (apId: string) =>
    (await trail(`object=agent:${apId}`))
      .filter(({ action }) => action.includes("command"))
      .map(({ actor, action, detail }) => [actor, action, detail]);

  it("records a sent command with its actor and agent, and the result once", async () => {
    const [agent, user] = await Promise.all([newAgent(), signedUp()]);
    const sent = await command(agent.apId, "set_channel 36", user.token);
    const job_number = await jobOf(sent);
    const postResult = () =>
      send("POST", `/api/v1/callback/command?job_number=${job_number}`, [{ channel: 36 }], agent.token);
    expect([(await postResult()).status, (await postResult()).status]).toEqual([200, 200]);
    const about = { command: "set_channel 36", job_number };
    expect(await ofCommands(agent.apId)).toEqual([
      [`agent:${agent.apId}`, "command done", { ...about, outcome: "done" }],
      [`user:${user.username}`, "send command", { ...about, outcome: "queued" }],
    ]);
    const [, queued] = await trail(`object=agent:${agent.apId}`);
    expect(queued?.request_id).toBe(sent.headers.get("X-Request-Id"));
  });

  it("records a command that failed, expired or was cancelled", async () => {
    const [agents, user] = await Promise.all([Promise.all([newAgent(), newAgent(), newAgent()]), signedUp()]);
    const jobs = await Promise.all(
      agents.map(async ({ apId }) => await jobOf(await command(apId, "reboot", user.token))),
    );
    const [failing, silent, cancelled] = agents.map(({ apId }) => apId);
    const path = `/api/v1/callback/command?job_number=${jobs[0]}`;
    await send("POST", path, [{ status: "failed" }], agents[0]?.token);
    const jobStore = createJobStore(createDatabase({ url: settings.LIBSQL_URL ?? "" }));
    const expiry = createJobExpiry(jobStore, createStreamClient(env.JOB_STREAM));
    await Promise.all([expiry.expire(jobs[1] ?? ""), expiry.expire(jobs[1] ?? "")]);
    await send("DELETE", `/api/v1/jobs/${jobs[2]}`, undefined, user.token);
    const ends = async (apId = "") => (await ofCommands(apId)).filter(([, action]) => action !== "send command");
    const about = (job_number = "") => ({ command: "reboot", job_number });
    expect(await ends(failing)).toEqual([
      [`agent:${failing}`, "command failed", { ...about(jobs[0]), outcome: "failed" }],
    ]);
    expect(await ends(silent)).toEqual([["service", "command expired", { ...about(jobs[1]), outcome: "expired" }]]);
    expect(await ends(cancelled)).toEqual([
      [`user:${user.username}`, "command cancelled", { ...about(jobs[2]), outcome: "cancelled" }],
    ]);
  });

  it("records at most sixty refused commands per minute and caller", async () => {
    const [agent, user] = await Promise.all([newAgent({ commands: ["ping"] }), signedUp()]);
    await command(agent.apId, "ping", user.token);
    const statuses = new Set<number>();
    for (let i = 0; i < 7; i++) {
      const responses = await Promise.all(
        Array.from({ length: 10 }, (_, j) => command(agent.apId, (i + j) % 2 === 0 ? "ping" : "explode", user.token)),
      );
      for (const { status } of responses) statuses.add(status);
    }
    expect(statuses).toEqual(new Set([400, 409]));
    const refused = (await ofCommands(agent.apId)).filter(([, , detail]) => JSON.stringify(detail).includes("refused"));
    expect(refused).toHaveLength(60);
    const by = { actor: `user:${user.username}`, action: "send command" };
    const expected = [
      { command: "ping", outcome: "refused", reason: "The agent was sent another command within the last 10 seconds" },
      { command: "explode", outcome: "refused", reason: "The agent does not know this command" },
    ];
    for (const [actor, action, detail] of refused) {
      expect({ actor, action }).toEqual(by);
      expect(expected).toContainEqual(detail);
    }
    expect(new Set(refused.map(([, , detail]) => JSON.stringify(detail))).size).toBe(2);
  });

  it("records each agent of a bulk command, and its refusals in one entry with some of the names", async () => {
    const [agents, user] = await Promise.all([Promise.all([newAgent(), newAgent()]), signedUp()]);
    const unknown = Array.from({ length: 30 }, () => uniqueName());
    const ap_ids = [...agents.map(({ apId }) => apId), ...unknown];
    const sent = await send("POST", "/api/v1/commands", { command: "reboot", agents: { ap_ids } }, user.token);
    const { jobs } = (await sent.json()) as { jobs: { ap_id: string; job_number: string }[] };
    expect(jobs).toHaveLength(2);
    for (const { ap_id, job_number } of jobs) {
      expect(await ofCommands(ap_id)).toEqual([
        [`user:${user.username}`, "send command", { command: "reboot", job_number, outcome: "queued" }],
      ]);
    }
    const entries = await trail(`actor=${encodeURIComponent(`user:${user.username}`)}`);
    const refusals = entries.filter(({ object }) => object === "agents");
    expect(refusals).toMatchObject([
      { action: "send command", detail: { command: "reboot", outcome: "refused", agents: 30 } },
    ]);
    expect(refusals[0]?.detail?.refused).toHaveLength(20);
    expect(refusals[0]?.detail?.refused).toContainEqual({ ap_id: unknown[0], reason: "Agent not found" });
  });

  it("does not report commands as account changes, and still advances the mark", async () => {
    const database = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" });
    const auditFeed = createAuditFeed(database);
    const { mark } = await auditFeed.since(undefined);
    const name = uniqueName();
    const names = (changed: ChangedObjects) => (changed === "everything" ? ["everything", name] : [...changed]);
    const entry = (action: string) => ({ action, object: name, at: new Date(), requestId: "", actor: "user:" });
    const actions = ["send command", "command done", "command expired", "emulation done", "emulation failed"];
    const row = sql`select ${Date.now()}, '', 'user:', a.value, ${name} from json_each(${JSON.stringify(actions)}) as a`;
    await database.run(sql`
      insert into ${audit} (at, request_id, actor, action, object)
      ${row}, json_each(${JSON.stringify(Array.from({ length: 1_200 }, (_, i) => i))})`);
    const ofCommands = await auditFeed.since(mark);
    expect(names(ofCommands.changed)).not.toContain(name);
    expect(ofCommands.mark).toBeGreaterThanOrEqual(mark + 6_000);
    await database.insert(audit).values([entry("send command"), entry("delete"), entry("command done")]);
    const both = await auditFeed.since(ofCommands.mark);
    expect(names(both.changed)).toContain(name);
    expect(both.mark).toBeGreaterThanOrEqual(ofCommands.mark + 3);
    expect(names((await auditFeed.since(both.mark)).changed)).not.toContain(name);
    await database.delete(audit).where(eq(audit.object, name));
  });

  it("is queried through its indexes", async () => {
    const database = createDatabase({ url: settings.LIBSQL_URL ?? "" });
    const plan = async (where: SQL) =>
      JSON.stringify(
        await database.all(sql`explain query plan select * from ${audit} where ${where} order by id desc limit 9`),
      );
    expect(await plan(sql`object = 'agent:x' and id < 9`)).toContain("INDEX audit_object (object=? AND id<?)");
    expect(await plan(sql`actor = 'user:x' and id < 9`)).toContain("INDEX audit_actor (actor=? AND id<?)");
    expect(await plan(sql`id > 9 and action not in ('send command')`)).toContain("INTEGER PRIMARY KEY (rowid>?)");
  });
});

describe("a change in the audit feed", () => {
  const changed = new Set(["agent:one", "app:two", "user:three", "job:0123abcd-0000-4000-8000-000000000000"]);

  it.each([
    ["agent", "one", true],
    ["agent", "two", false],
    ["app", "two", true],
    ["app", "one", false],
    ["user", "three", true],
    ["agent", "emu-wifi-0123abcd-0001", true],
    ["agent", "emu-wifi-4567abcd-0001", false],
    ["app", "emu-wifi-0123abcd-0001", false],
    ["agent", "emu-", false],
    ["agent", "0123abcd", false],
  ] as const)("with the number of a job concerns only its emulated agents: %s %s %s", (kind, name, expected) => {
    expect(concernedBy(changed)(kind, name)).toBe(expected);
  });

  it("concerns every account if there are too many changes to list", () => {
    expect(concernedBy("everything")("user", "four")).toBe(true);
  });
});
