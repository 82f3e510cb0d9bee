import { createExecutionContext, env } from "cloudflare:test";
import { describe, expect, inject, it } from "vitest";
import { appWith, PASSWORD, signedUp, uniqueEmail } from "../support.ts";

const service = inject("passwordService");
const there = { PASSWORDS_URL: service.url, PASSWORDS_TOKEN: service.token };
const away = { ...there, PASSWORDS_URL: "http://127.0.0.1:9" };

const logIn = (settings: Record<string, string>, username: string, password: string) =>
  appWith(settings).request(
    "/api/v1/token/?login_type=user",
    { method: "POST", body: new URLSearchParams({ username, password }) },
    env,
    createExecutionContext(),
  );

describe("with a process that hashes passwords", () => {
  it("lets in whoever may come in, whoever made the hash, and nobody else", async () => {
    const { username } = await signedUp();
    expect((await logIn(there, username, PASSWORD)).status).toBe(200);
    expect((await logIn(there, username, `${PASSWORD}x`)).status).toBe(401);
    expect((await logIn(there, uniqueEmail(), PASSWORD)).status).toBe(401);
  });

  it("is ready, and names it", async () => {
    const response = await appWith(there).request("/readyz");
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ parts: { passwords: "up" } });
  });

  it("notices in readyz that the process knows another token", async () => {
    const response = await appWith({ ...there, PASSWORDS_TOKEN: "some other token" }).request("/readyz");
    expect(await response.json()).toMatchObject({ detail: "Down: passwords" });
  });

  it("is 503 with Retry-After while it is away, for names known and unknown, and everything else goes on", async () => {
    const { username, token } = await signedUp();
    for (const name of [username, uniqueEmail()]) {
      const response = await logIn(away, name, PASSWORD);
      expect(response.status).toBe(503);
      expect(response.headers.get("Retry-After")).toBe("2");
      expect(await response.json()).toEqual({ detail: "The password service is not available at the moment" });
    }
    const headers = { Authorization: `Bearer ${token}` };
    expect((await appWith(away).request("/api/v1/users/me", { headers })).status).toBe(200);
  });

  it("does not count as a failed login what could not be checked", async () => {
    const { username } = await signedUp();
    for (let i = 0; i < 12; i++) expect((await logIn(away, username, PASSWORD)).status).toBe(503);
    expect((await logIn(there, username, PASSWORD)).status).toBe(200);
  });
});
