import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { createAgentStore } from "../../../src/accounts/agents/agent-store.ts";
import { createAppStore } from "../../../src/accounts/app-store.ts";
import { type AuditFeed, createAuditFeed } from "../../../src/accounts/audit-feed.ts";
import { createEnrolmentTokenStore } from "../../../src/accounts/enrolment/enrolment-token-store.ts";
import { createGroupStore } from "../../../src/accounts/group-store.ts";
import { createAuthenticate } from "../../../src/accounts/login/authenticate.ts";
import { createUserStore } from "../../../src/accounts/user-store.ts";
import { createTokens } from "../../../src/auth/tokens.ts";
import { parseEnv } from "../../../src/env.ts";
import { sleep } from "../../../src/lib/deadline.ts";
import { NotAuthenticated, Unavailable } from "../../../src/lib/errors.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, newAgent, send, signedUp } from "../support.ts";

const config = parseEnv(env);
const database = createDatabase({ url: config.LIBSQL_URL });
const tokens = createTokens({ keys: config.JWT_KEYS, issuer: config.JWT_ISSUER, lifetimeSeconds: 3600 });

/** An authenticator with a clock of its own, which counts the queries for accounts. */
function newAuthenticate(auditFeed: AuditFeed = createAuditFeed(database)) {
  const clock = { ms: Date.now() };
  const counted = { queries: 0, during: async () => {} };
  const agents = createAgentStore(database);
  const authenticate = createAuthenticate({
    tokens,
    users: createUserStore(database),
    agents: {
      ...agents,
      find: async (apId) => {
        counted.queries++;
        const found = await agents.find(apId);
        await counted.during();
        return found;
      },
    },
    apps: createAppStore(database),
    groups: createGroupStore(database),
    enrolmentTokens: createEnrolmentTokenStore(database),
    auditFeed,
    serviceTokens: { setup: undefined, enrolment: undefined, scraper: undefined },
    now: () => clock.ms,
  });
  return { authenticate, clock, counted };
}

const changePassword = async (apId: string) =>
  expect(
    (await send("PUT", `/api/v1/agents/${apId}`, { password: "another password" }, await adminToken())).status,
  ).toBe(200);

describe("authenticating a token", () => {
  it("queries an account once, and again only when that account has changed", async () => {
    const { authenticate, clock, counted } = newAuthenticate();
    const [one, two] = await Promise.all([newAgent(), newAgent()]);
    for (let i = 0; i < 10; i++) {
      expect(await authenticate(one.token)).toMatchObject({ kind: "agent", name: one.apId });
      clock.ms += 10_000;
    }
    expect(counted.queries).toBe(1);
    await changePassword(two.apId);
    clock.ms += 2_000;
    await authenticate(one.token);
    expect(counted.queries).toBe(1);
    await changePassword(one.apId);
    clock.ms += 2_000;
    await expect(authenticate(one.token)).rejects.toThrow(NotAuthenticated);
    expect(counted.queries).toBe(2);
  });

  it("queries emulated agents again only when their own job has changed, and other agents not at all", async () => {
    const jobs = [crypto.randomUUID(), crypto.randomUUID()];
    let mark = 0;
    let changed = new Set<string>();
    const { authenticate, clock, counted } = newAuthenticate({ since: async () => ({ mark: ++mark, changed }) });
    const emulated = await Promise.all(
      jobs.map(async (job) => {
        const agent = { credentialKind: "hmac", credential: "", configuration: {} } as const;
        const by = { kind: "console", name: "test", requestId: "" } as const;
        const name = `emu-wifi-${job.slice(0, 8)}-0001`;
        const { version: ver } = await createAgentStore(database).insert({ ...agent, apId: name }, by);
        return await tokens.issue({ sub: name, login_type: "agent", roles: [], scope: "", ver });
      }),
    );
    const { token } = await newAgent();
    const all = [token, ...emulated];
    for (const each of all) await authenticate(each);
    expect(counted.queries).toBe(3);
    changed = new Set([`job:${jobs[0]}`]);
    clock.ms += 2_000;
    for (const each of all) await authenticate(each);
    expect(counted.queries).toBe(4);
    changed = new Set(["job:0123456789"]);
    clock.ms += 2_000;
    for (const each of all) await authenticate(each);
    expect(counted.queries).toBe(4);
  });

  it("rejects an emulated agent after its job is removed", async () => {
    const { authenticate, clock } = newAuthenticate();
    const { token: owner } = await signedUp();
    const spec = { access_point_type: "WiFi", num_access_points: 1, locations: ["51.45, -2.58"], num_devices: 1 };
    const spinUp = await send("POST", "/api/v1/emulator/spinup", { emulators: [{ ...spec, duration: 60 }] }, owner);
    const { job_number, ap_ids } = (await spinUp.json()) as { job_number: string; ap_ids: [string] };
    const [sub] = ap_ids;
    const { version: ver = 0 } = (await createAgentStore(database).find(sub)) ?? {};
    const token = await tokens.issue({ sub, login_type: "agent", roles: [], scope: "", ver });
    expect(await authenticate(token)).toMatchObject({ kind: "agent", name: sub });
    expect((await send("DELETE", `/api/v1/emulator/${job_number}`, undefined, owner)).status).toBe(200);
    clock.ms += 2_000;
    await expect(authenticate(token)).rejects.toThrow(NotAuthenticated);
  });

  it("does not cache an account that changes during the query", async () => {
    const { authenticate, clock, counted } = newAuthenticate();
    const { apId, token } = await newAgent();
    const other = await newAgent();
    counted.during = async () => {
      counted.during = async () => {};
      await changePassword(apId);
      clock.ms += 2_000;
      // The request of another caller reads the change in the meantime.
      await authenticate(other.token);
    };
    await authenticate(token);
    await expect(authenticate(token)).rejects.toThrow(NotAuthenticated);
  });

  it("uses the cache for five seconds while the audit feed is unavailable, and not longer", async () => {
    let isUnavailable = false;
    const auditFeed = createAuditFeed(database);
    const { authenticate, clock } = newAuthenticate({
      since: async (mark) => {
        if (isUnavailable) throw new Unavailable("accounts database", new Error("outage"));
        return await auditFeed.since(mark);
      },
    });
    const { token } = await newAgent();
    await authenticate(token);
    isUnavailable = true;
    clock.ms += 4_999;
    await authenticate(token);
    clock.ms += 1;
    await expect(authenticate(token)).rejects.toThrow(Unavailable);
    isUnavailable = false;
    await authenticate(token);
  });

  it("waits longer for a slow database once the cache is too old to be used", async () => {
    const auditFeed = createAuditFeed(database);
    let delayMs = 0;
    const { authenticate, clock } = newAuthenticate({
      since: async (mark) => {
        await sleep(delayMs);
        return await auditFeed.since(mark);
      },
    });
    const { token } = await newAgent();
    await authenticate(token);
    delayMs = 600;
    clock.ms += 5_000;
    await authenticate(token);
  });
});
