import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { createAgentStore } from "../../../src/accounts/agent-store.ts";
import { createAppStore } from "../../../src/accounts/app-store.ts";
import { type AuditFeed, createAuditFeed } from "../../../src/accounts/audit-feed.ts";
import { createAuthenticate } from "../../../src/accounts/login/authenticate.ts";
import { createUserStore } from "../../../src/accounts/user-store.ts";
import { createTokens } from "../../../src/auth/tokens.ts";
import { parseEnv } from "../../../src/env.ts";
import { NotAuthenticated, Unavailable } from "../../../src/lib/errors.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, newAgent, send, signedUp } from "../support.ts";

const config = parseEnv(env);
const database = createDatabase({ url: config.LIBSQL_URL });
const tokens = createTokens({ keys: config.JWT_KEYS, issuer: config.JWT_ISSUER, lifetimeSeconds: 3600 });

/** Sessions with a clock of their own, that count how often an account is looked up. */
function sessions(changes: AuditFeed = createAuditFeed(database)) {
  const clock = { ms: Date.now() };
  const counted = { lookups: 0, during: async () => {} };
  const agents = createAgentStore(database);
  const authenticate = createAuthenticate({
    tokens,
    users: createUserStore(database),
    agents: {
      ...agents,
      find: async (apId) => {
        counted.lookups++;
        const found = await agents.find(apId);
        await counted.during();
        return found;
      },
    },
    apps: createAppStore(database),
    changes,
    serviceTokens: { setup: undefined, enrolment: undefined, scraper: undefined },
    now: () => clock.ms,
  });
  return { authenticate, clock, counted };
}

const rename = async (apId: string) =>
  expect(
    (await send("PUT", `/api/v1/agents/${apId}`, { password: "another password" }, await adminToken())).status,
  ).toBe(200);

describe("a session", () => {
  it("looks an account up once, and again when that account has changed, not when another one has", async () => {
    const { authenticate, clock, counted } = sessions();
    const [one, two] = await Promise.all([newAgent(), newAgent()]);
    for (let i = 0; i < 10; i++) {
      expect(await authenticate(one.token)).toMatchObject({ kind: "agent", name: one.apId });
      clock.ms += 10_000;
    }
    expect(counted.lookups).toBe(1);
    await rename(two.apId);
    clock.ms += 2_000;
    await authenticate(one.token);
    expect(counted.lookups).toBe(1);
    await rename(one.apId);
    clock.ms += 2_000;
    await expect(authenticate(one.token)).rejects.toThrow(NotAuthenticated);
    expect(counted.lookups).toBe(2);
  });

  it("of an agent that is not emulated is not looked up again when emulated ones come or go", async () => {
    let mark = 0;
    const { authenticate, clock, counted } = sessions({
      since: async () => ({ mark: ++mark, changed: new Set(["job:0123456789"]) }),
    });
    const { token } = await newAgent();
    for (let i = 0; i < 3; i++) {
      await authenticate(token);
      clock.ms += 2_000;
    }
    expect(counted.lookups).toBe(1);
  });

  it("of an emulated agent ends when its job is removed", async () => {
    const { authenticate, clock } = sessions();
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

  it("does not remember what changed while it was being looked up", async () => {
    const { authenticate, clock, counted } = sessions();
    const { apId, token } = await newAgent();
    const other = await newAgent();
    counted.during = async () => {
      counted.during = async () => {};
      await rename(apId);
      clock.ms += 2_000;
      // Somebody else's request sees the change in the meantime.
      await authenticate(other.token);
    };
    await authenticate(token);
    await expect(authenticate(token)).rejects.toThrow(NotAuthenticated);
  });

  it("goes on for five seconds while changes cannot be seen, and not longer", async () => {
    let isAway = false;
    const changes = createAuditFeed(database);
    const { authenticate, clock } = sessions({
      since: async (mark) => {
        if (isAway) throw new Unavailable("accounts database", new Error("away"));
        return await changes.since(mark);
      },
    });
    const { token } = await newAgent();
    await authenticate(token);
    isAway = true;
    clock.ms += 4_999;
    await authenticate(token);
    clock.ms += 1;
    await expect(authenticate(token)).rejects.toThrow(Unavailable);
    isAway = false;
    await authenticate(token);
  });
});
