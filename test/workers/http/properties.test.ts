import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { adminToken, anyText, PASSWORD, request, send, uniqueEmail, uniqueName } from "../support.ts";

/** For any input, the response is documented, which `support.ts` checks, and never a 5xx. */

const RUNS = { numRuns: 60 };
const strange = fc.oneof(
  anyText({ maxLength: 300 }),
  fc.constantFrom("__proto__", "constructor", "' or 1=1 --", "%00", "\u0000"),
);
const json = fc.oneof(
  fc.jsonValue({ maxDepth: 5 }),
  fc.dictionary(anyText({ maxLength: 20 }), anyText({ maxLength: 20 }), { maxKeys: 5 }),
);
const bodies = [
  ["POST", "/api/v1/users/signup", ["username", "password"]],
  ["POST", "/api/v1/users/", ["username", "password", "roles"]],
  ["POST", "/api/v1/users/reset-password", ["token", "new_password"]],
  ["PUT", "/api/v1/users/unknown%40example.com", ["password", "roles"]],
  ["POST", "/api/v1/agents/", ["ap_id", "password", "configuration"]],
  ["PUT", "/api/v1/agents/unknown", ["password", "configuration"]],
  ["POST", "/api/v1/third_party_apps/", ["app_name", "api_key", "permissions"]],
  ["PUT", "/api/v1/third_party_apps/unknown", ["api_key", "permissions"]],
  ["PUT", "/api/v1/agents/unknown/labels", ["site", "technology"]],
  ["PUT", "/api/v1/groups/random", ["selector", "description"]],
  ["POST", "/api/v1/alerts/rules/test", ["rule", "from", "to", "resolution"]],
] as const;

describe("random input", () => {
  it.each(bodies)("never causes a 5xx as JSON body of %s %s", async (method, path, fields) => {
    const token = await adminToken();
    const record = fc.record(Object.fromEntries(fields.map((name) => [name, fc.oneof(json, strange)])), {
      requiredKeys: [],
    });
    await fc.assert(
      fc.asyncProperty(fc.oneof(record, json), async (body) => {
        expect((await send(method, path, JSON.stringify(body), token)).status).toBeLessThan(500);
      }),
      RUNS,
    );
  });

  it("never causes a 5xx as a login form", async () => {
    await fc.assert(
      fc.asyncProperty(
        strange,
        strange,
        strange,
        fc.constantFrom("user", "agent", "third_party_app", "x"),
        async (username, password, scope, type) => {
          const body = new URLSearchParams({ username: `${username}${uniqueName()}`, password, scope });
          expect((await request(`/api/v1/token/?login_type=${type}`, { method: "POST", body })).status).toBeLessThan(
            500,
          );
        },
      ),
      { numRuns: 20 },
    );
  });

  it("never causes a 5xx as a name in a path", async () => {
    const token = await adminToken();
    await fc.assert(
      fc.asyncProperty(strange, fc.constantFrom("users", "agents", "third_party_apps"), async (name, kind) => {
        const path = `/api/v1/${kind}/${encodeURIComponent(name.toWellFormed()).replaceAll(".", "%2E")}`;
        expect((await send("GET", path, undefined, token)).status).toBeLessThan(500);
      }),
      RUNS,
    );
  });

  it("as a password allows the login, and no other password does", async () => {
    // Two UTF-16 units may be one character.
    const password = anyText({ minLength: 16, maxLength: 64 });
    await fc.assert(
      fc.asyncProperty(password, async (secret) => {
        const username = uniqueEmail();
        expect((await send("POST", "/api/v1/users/signup", { username, password: secret })).status).toBe(200);
        const attempt = async (text: string) => {
          const body = new URLSearchParams({ username, password: text });
          return (await request("/api/v1/token/?login_type=user", { method: "POST", body })).status;
        };
        expect(await attempt(secret)).toBe(200);
        expect(await attempt(`${secret}x`)).toBe(401);
        expect(await attempt(PASSWORD)).toBe(401);
      }),
      { numRuns: 10 },
    );
  });

  it("as a configuration is returned unchanged, except for keys that could change a prototype", async () => {
    const token = await adminToken();
    const configuration = fc
      .dictionary(anyText({ maxLength: 20 }), json, { maxKeys: 5 })
      .filter((value) => !("geolocation" in value) && !JSON.stringify(value).includes("__proto__"));
    await fc.assert(
      fc.asyncProperty(configuration, async (value) => {
        const body = { ap_id: uniqueName(), password: PASSWORD, configuration: value };
        const agent = (await (await send("POST", "/api/v1/agents/", body, token)).json()) as { configuration: unknown };
        expect(agent.configuration).toEqual(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 15 },
    );
  });
});
