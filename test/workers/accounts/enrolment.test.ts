import { eq } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import { agents, audit, enrolmentUses } from "../../../src/accounts/account-tables.ts";
import { edgePasswords } from "../../../src/auth/argon2-wasm.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { SECRET_MARK } from "../../support/secret-mark.ts";
import { adminToken, appWith, bearer, PASSWORD, settings, uniqueName } from "../support.ts";

const database = () => createDatabase({ url: settings.LIBSQL_URL ?? "" });
const newToken = (): string => `${SECRET_MARK}-${crypto.randomUUID()}`;

async function enrol(changes: Record<string, string>, token: string, ap_id = uniqueName()) {
  const response = await appWith(changes).request("/api/v1/agents/public", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...bearer(token) },
    body: JSON.stringify({ ap_id, password: PASSWORD, configuration: {} }),
  });
  return { status: response.status, ap_id, body: (await response.json()) as { detail?: string } };
}

describe("an enrolment token", () => {
  it("registers access points up to its limit, also after a restart", async () => {
    const token = newToken();
    const limits = { ENROLMENT_TOKEN: token, ENROLMENT_MAX_USES: "2" };
    const first = await enrol(limits, token);
    expect(first.status).toBe(200);
    // A failed registration does not count.
    expect((await enrol(limits, token, first.ap_id)).status).toBe(409);
    expect((await enrol(limits, token, "not a name")).status).toBe(422);
    expect((await enrol(limits, token)).status).toBe(200);
    const hash = vi.spyOn(edgePasswords, "hash");
    const third = await enrol(limits, token);
    // A token that is used up costs no hash of a password.
    expect(hash).not.toHaveBeenCalled();
    hash.mockRestore();
    const detail = "The enrolment token has been used 2 times, which is its limit";
    expect([third.status, third.body]).toEqual([403, { detail }]);
    const rows = await database().select().from(agents).where(eq(agents.apId, third.ap_id));
    const entries = await database()
      .select()
      .from(audit)
      .where(eq(audit.object, `agent:${third.ap_id}`));
    expect([rows, entries]).toEqual([[], []]);
    // A new limit for the same token includes earlier uses. A new token starts at zero.
    expect((await enrol({ ...limits, ENROLMENT_MAX_USES: "3" }, token)).status).toBe(200);
    const next = newToken();
    expect((await enrol({ ...limits, ENROLMENT_TOKEN: next }, next)).status).toBe(200);
    // Administrators are not limited.
    expect((await enrol(limits, await adminToken())).status).toBe(200);
  });

  it("keeps its limit under concurrent requests", async () => {
    const token = newToken();
    const limits = { ENROLMENT_TOKEN: token, ENROLMENT_MAX_USES: "3" };
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => enrol(limits, token)));
    const statuses = outcomes.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([200, 200, 200, 403, 403, 403, 403, 403]);
  });

  it("expires", async () => {
    const token = newToken();
    const until = (ms: number) => ({ ENROLMENT_TOKEN: token, ENROLMENT_EXPIRES_AT: new Date(ms).toISOString() });
    expect((await enrol(until(Date.now() + 60_000), token)).status).toBe(200);
    const late = await enrol(until(Date.now() - 1), token);
    expect([late.status, late.body]).toEqual([403, { detail: "The enrolment token has expired" }]);
    expect((await enrol(until(Date.now() - 1), await adminToken())).status).toBe(200);
  });

  it("has no limits by default, and is stored only as a hash", async () => {
    const token = newToken();
    const settings = { ENROLMENT_TOKEN: token };
    for (let i = 0; i < 3; i++) expect((await enrol(settings, token)).status).toBe(200);
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token));
    const rows = await database().select().from(enrolmentUses);
    const hash = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    expect(rows).toContainEqual({ tokenHash: hash, uses: 3 });
    for (const { tokenHash } of rows) expect(tokenHash).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(rows)).not.toContain(token);
  });

  it.each([
    [{ ENROLMENT_MAX_USES: "0" }, "The setting ENROLMENT_MAX_USES must be a whole number from 1 to 1000000000."],
    [{ ENROLMENT_MAX_USES: "many" }, "The setting ENROLMENT_MAX_USES must be a number."],
    ...["tomorrow", "2027-02-30T00:00:00Z", "2027-01-31", "2027-01-31T00:00:00"].map((text): [object, string] => [
      { ENROLMENT_EXPIRES_AT: text },
      "The setting ENROLMENT_EXPIRES_AT must be a time with an offset, as in 2027-01-31T00:00:00Z.",
    ]),
  ])("rejects invalid limits: %j", (changes, message) => {
    expect(() => appWith(changes as Record<string, string>)).toThrow(message);
  });

  it("has no limits if the settings are empty", () => {
    expect(() => appWith({ ENROLMENT_MAX_USES: "", ENROLMENT_EXPIRES_AT: "" })).not.toThrow();
  });
});
