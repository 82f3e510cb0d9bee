import { sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { agents } from "../../../src/accounts/account-tables.ts";
import { createAgentStore } from "../../../src/accounts/agents/agent-store.ts";
import { auditIfChanged } from "../../../src/accounts/audit.ts";
import { putLabels } from "../fleet/requests.ts";
import { adminToken, logIn, newAgent, PASSWORD, send, settings, signedUp, uniqueName } from "../support.ts";
import { ADMIN, brief, database, eventLog, eventsOf } from "./event-support.ts";

const TEST = { kind: "console", name: "test", requestId: "" } as const;

describe("an event about an agent", () => {
  it("is written once for its registration, each change, its labels and its deletion", async () => {
    const [apId, admin] = [uniqueName(), await adminToken()];
    const path = `/api/v1/agents/${apId}`;
    const configuration = { access_point_type: "LiFi" };
    const labels = { site: "lab", floor: "1" };
    const found = await eventsOf(apId, async () => {
      const body = { ap_id: apId, password: PASSWORD, configuration, labels };
      expect((await send("POST", "/api/v1/agents/", body, admin)).status).toBe(200);
      await send("PUT", path, { configuration: { ...configuration, a: 1 } }, admin);
      await send("PUT", path, { password: `${PASSWORD}2` }, admin);
      await putLabels(apId, { site: "roof", floor: null }, admin);
      // No change, no event.
      await putLabels(apId, { site: "roof" }, admin);
      expect((await send("DELETE", path, undefined, admin)).status).toBe(200);
      await send("DELETE", path, undefined, admin);
    });
    expect(brief(found)).toEqual([
      { type: "agent.registered", actor: ADMIN, data: {} },
      { type: "agent.updated", actor: ADMIN, data: { action: "configure" } },
      { type: "agent.updated", actor: ADMIN, data: { action: "change password" } },
      { type: "agent.relabelled", actor: ADMIN, data: { labels: { site: "roof", floor: null } } },
      { type: "agent.deleted", actor: ADMIN, data: {} },
    ]);
    const ofService = { technology: "LiFi", emulated: "false" };
    expect(found.map((event) => event.labels)).toEqual([
      ...[labels, labels, labels].map((one) => ({ ...one, ...ofService })),
      // The labels after the change, and those that the deleted agent had.
      { site: "roof", ...ofService },
      { site: "roof", ...ofService },
    ]);
    for (const { ap_id, severity } of found) expect([ap_id, severity]).toEqual([apId, "info"]);
  });

  it("is written once for its first login", async () => {
    const apId = uniqueName();
    const credential = { credentialKind: "argon2id", credential: settings.PASSWORD_HASH ?? "" } as const;
    await createAgentStore(database).insert({ apId, ...credential, configuration: {}, labels: { site: "x" } }, TEST);
    const found = await eventsOf(apId, async () => {
      for (let i = 0; i < 2; i++) expect((await logIn(apId, PASSWORD, "agent")).status).toBe(200);
    });
    expect(found).toMatchObject([
      { type: "agent.onboarded", actor: `agent:${apId}`, labels: { site: "x", emulated: "false" }, data: {} },
    ]);
  });

  it("is one event with the number of agents, if a request relabels several", async () => {
    const [site, admin] = [uniqueName(), await adminToken()];
    await Promise.all([newAgent({}, { site }), newAgent({}, { site })]);
    const selector = `site=${site}`;
    const found = await eventsOf(site, async () => {
      expect((await send("POST", "/api/v1/labels", { selector, labels: { floor: "2" } }, admin)).status).toBe(200);
    });
    expect(found).toMatchObject([
      { type: "agent.relabelled", ap_id: null, labels: {}, data: { agents: 2, selector, labels: { floor: "2" } } },
    ]);
  });

  it("is not written if its transaction fails, and is if it succeeds", async () => {
    const { apId } = await newAgent();
    const entry = auditIfChanged(database, TEST, "configure", `agent:${apId}`);
    const update = database.update(agents).set({ onboard: true }).where(sql`ap_id = ${apId}`);
    const failing = database.run(sql`insert into agents (id) values ('incomplete')`);
    const fail = () => expect(database.batch([update, entry, failing])).rejects.toThrow();
    expect(await eventsOf(apId, fail)).toEqual([]);
    expect(await eventsOf(apId, () => database.batch([update, entry]))).toMatchObject([{ type: "agent.updated" }]);
  });

  it("has the labels of the last event, if the agent was deleted before it was written", async () => {
    const { apId } = await newAgent({}, { site: "lost" });
    expect((await send("DELETE", `/api/v1/agents/${apId}`, undefined, await adminToken())).status).toBe(200);
    const offline = { atMs: Date.now(), type: "agent.offline", severity: "warning", apId, data: {} } as const;
    const found = await eventsOf(apId, () => eventLog.append([{ ...offline, source: apId }]));
    expect(found).toMatchObject([{ type: "agent.offline", labels: { site: "lost", emulated: "false" } }]);
  });

  it("is inserted once, if it has a source and is sent again", async () => {
    const { apId } = await newAgent();
    const online = { atMs: Date.now(), type: "agent.online", severity: "info", apId, data: {} } as const;
    const found = await eventsOf(apId, async () => {
      for (let i = 0; i < 3; i++) await eventLog.append([{ ...online, source: `test/${apId}` }]);
    });
    expect(found.map(({ type }) => type)).toEqual(["agent.online"]);
  });

  it("has no secrets", async () => {
    const [apId, { username }] = [uniqueName(), await signedUp()];
    const found = await eventsOf(
      () => "",
      async () => {
        const body = { ap_id: apId, password: PASSWORD, configuration: { psk: "wifi-key-of-the-lab" } };
        await send("POST", "/api/v1/agents/", body, await adminToken());
        const command = encodeURIComponent("set_psk wifi-key-of-the-lab");
        await send("POST", `/api/v1/send_command?agent_id=${apId}&command=${command}`, undefined, await adminToken());
        await send("PUT", `/api/v1/users/${encodeURIComponent(username)}`, { password: PASSWORD }, await adminToken());
      },
    );
    expect(found.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["agent.registered", "command.issued", "account.updated"]),
    );
    expect(JSON.stringify(found)).not.toMatch(/wifi-key-of-the-lab/);
    expect(JSON.stringify(found)).not.toContain(PASSWORD);
  });
});
