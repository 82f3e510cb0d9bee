import { createExecutionContext, env } from "cloudflare:test";
import { describe, expect, inject, it } from "vitest";
import { appWith, PASSWORD, signedUp, uniqueEmail } from "../support.ts";

const service = inject("passwordService");
const available = { PASSWORDS_URL: service.url, PASSWORDS_TOKEN: service.token };
const unavailable = { ...available, PASSWORDS_URL: "http://127.0.0.1:9" };

const logIn = (settings: Record<string, string>, username: string, password: string) =>
  appWith(settings).request(
    "/api/v1/token/?login_type=user",
    { method: "POST", body: new URLSearchParams({ username, password }) },
    env,
    createExecutionContext(),
  );

describe("with the password service", () => {
  it("a login succeeds with the right password only, for hashes of either implementation", async () => {
    const { username } = await signedUp();
    expect((await logIn(available, username, PASSWORD)).status).toBe(200);
    expect((await logIn(available, username, `${PASSWORD}x`)).status).toBe(401);
    expect((await logIn(available, uniqueEmail(), PASSWORD)).status).toBe(401);
  });

  it("readyz reports the password service as up", async () => {
    const response = await appWith(available).request("/readyz");
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ parts: { passwords: "up" } });
  });

  it("readyz reports the password service as down if its token differs", async () => {
    const response = await appWith({ ...available, PASSWORDS_TOKEN: "some other token" }).request("/readyz");
    expect(await response.json()).toMatchObject({ detail: "Down: passwords" });
  });

  it("a login returns 503 with Retry-After during an outage, for known and unknown names, and other requests work", async () => {
    const { username, token } = await signedUp();
    for (const name of [username, uniqueEmail()]) {
      const response = await logIn(unavailable, name, PASSWORD);
      expect(response.status).toBe(503);
      expect(response.headers.get("Retry-After")).toBe("2");
      expect(await response.json()).toEqual({ detail: "The password service is not available at the moment" });
    }
    const headers = { Authorization: `Bearer ${token}` };
    expect((await appWith(unavailable).request("/api/v1/users/me", { headers })).status).toBe(200);
  });

  it("a login during an outage does not count as failed", async () => {
    const { username } = await signedUp();
    for (let i = 0; i < 12; i++) expect((await logIn(unavailable, username, PASSWORD)).status).toBe(503);
    expect((await logIn(available, username, PASSWORD)).status).toBe(200);
  });
});
