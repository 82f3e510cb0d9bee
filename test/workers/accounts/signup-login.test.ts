import { describe, expect, it } from "vitest";
import { bearer, logIn, PASSWORD, postJson, request, signedUp, uniqueEmail } from "../support.ts";

describe("sign-up", () => {
  it("creates a standard user and never returns the password", async () => {
    const username = uniqueEmail();
    const response = await postJson("/api/v1/users/signup", { username, password: PASSWORD });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      username,
      roles: "user",
      scopes: ["agents:read", "telemetry:read", "commands:send", "emulator:run"],
    });
  });

  it("ignores roles in the request", async () => {
    const response = await postJson("/api/v1/users/signup", {
      username: uniqueEmail(),
      password: PASSWORD,
      roles: ["admin"],
    });
    expect(await response.json()).toMatchObject({ roles: "user" });
  });

  it("rejects a name that differs only in case or spaces with 409", async () => {
    const username = uniqueEmail();
    const spellings = [username, username.toUpperCase(), ` ${username} `, username, username];
    const statuses = await Promise.all(
      spellings.map(
        async (name) => (await postJson("/api/v1/users/signup", { username: name, password: PASSWORD })).status,
      ),
    );
    expect(statuses.toSorted()).toEqual([200, 409, 409, 409, 409]);
  });
});

describe("login", () => {
  it("returns a token that users/me accepts", async () => {
    const { username, token } = await signedUp();
    const response = await request("/api/v1/users/me", { headers: bearer(token) });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ username, roles: "user" });
  });

  it("returns the fields of the contract", async () => {
    const { username } = await signedUp();
    const response = await logIn(username, PASSWORD);
    expect(await response.json()).toEqual({ access_token: expect.any(String), token_type: "bearer", expires_in: 3600 });
  });

  it("accepts a multipart form, and an empty grant type", async () => {
    const { username } = await signedUp();
    const body = new FormData();
    for (const [name, value] of Object.entries({ username, password: PASSWORD, grant_type: "" })) body.set(name, value);
    const response = await request("/api/v1/token/?login_type=user", { method: "POST", body });
    expect(response.status).toBe(200);
  });

  it.each(["agent", "third_party_app", "user"] as const)(
    "rejects an unknown %s like a wrong password",
    async (loginType) => {
      const response = await logIn(uniqueEmail(), PASSWORD, loginType);
      expect(response.status).toBe(401);
      expect(response.headers.get("WWW-Authenticate")).toBe("Bearer");
      expect(await response.json()).toEqual({ detail: "Incorrect username or password" });
    },
  );

  it("rejects a wrong password with 401", async () => {
    const { username } = await signedUp();
    expect((await logIn(username, `${PASSWORD}!`)).status).toBe(401);
  });

  it("omits scopes that were not requested or not granted", async () => {
    const { username } = await signedUp();
    const body = new URLSearchParams({ username, password: PASSWORD, scope: "agents:read users:manage" });
    const response = await request("/api/v1/token/?login_type=user", { method: "POST", body });
    const { access_token } = (await response.json()) as { access_token: string };
    const claims = JSON.parse(atob(access_token.split(".")[1] ?? "")) as { scope: string };
    expect(claims.scope).toBe("agents:read");
  });
});
