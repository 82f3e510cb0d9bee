import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { appWith, logIn, PASSWORD, send, signedUp, uniqueEmail } from "../support.ts";

const OTHER_PASSWORD = `${PASSWORD} anew`;
const PUBLIC_URL = "https://controller.example.com";

/** The app with the platform's e-mail binding, which keeps what it was given. */
function appWithMail(changes: Record<string, string> = {}) {
  const outbox: { from: string; to: string; subject: string; text: string; html: string }[] = [];
  const EMAIL = {
    send: async (message: unknown) => {
      outbox.push(message as (typeof outbox)[number]);
      return { messageId: "1" };
    },
  } as unknown as SendEmail;
  const app = appWith({ PUBLIC_URL, MAIL_FROM: "no-reply@example.com", ...changes }, { EMAIL });
  const address = crypto.randomUUID();
  const post = async (
    path: string,
    body: object,
    headers: Record<string, string> = { "CF-Connecting-IP": address },
  ) => {
    const context = createExecutionContext();
    const init = {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    };
    const response = await app.request(`/api/v1/users/${path}`, init, {}, context);
    await waitOnExecutionContext(context);
    return response;
  };
  return { outbox, post };
}

const tokenIn = (text: string): string => /#\/reset-password\/([\w-]{43})\b/.exec(text)?.[1] ?? "";

describe("a forgotten password", () => {
  it("is replaced through a link that comes by e-mail, works once and ends earlier sign-ins", async () => {
    const { username, token: session } = await signedUp();
    const { outbox, post } = appWithMail();
    expect((await post("password-recovery", { username: username.toUpperCase() })).status).toBe(200);
    expect(outbox).toHaveLength(1);
    const [message] = outbox;
    expect(message).toMatchObject({ from: "no-reply@example.com", to: username, subject: "Set a new password" });
    expect(message?.text).toContain(`${PUBLIC_URL}/#/reset-password/`);
    expect(message?.html).toContain(`href="${PUBLIC_URL}/#/reset-password/`);
    const token = tokenIn(message?.text ?? "");

    const reset = await post("reset-password", { token, new_password: OTHER_PASSWORD });
    expect(await reset.json()).toEqual({ status: "success", detail: "The new password is set." });
    expect((await logIn(username, PASSWORD)).status).toBe(401);
    expect((await logIn(username, OTHER_PASSWORD)).status).toBe(200);
    const again = await post("reset-password", { token, new_password: PASSWORD });
    expect([again.status, await again.json()]).toEqual([400, { detail: "Invalid or expired token" }]);
    await expect
      .poll(async () => (await send("GET", "/api/v1/users/me", undefined, session)).status, {
        timeout: 6_000,
        interval: 200,
      })
      .toBe(401);
  });

  it("can be replaced with each of several links, until one is used", async () => {
    const { username } = await signedUp();
    const { outbox, post } = appWithMail();
    await post("password-recovery", { username });
    await post("password-recovery", { username });
    const [first, second] = outbox.map(({ text }) => tokenIn(text));
    const resets = await Promise.all(
      [first, first, second].map(
        async (token) => (await post("reset-password", { token, new_password: OTHER_PASSWORD })).status,
      ),
    );
    expect(resets.toSorted()).toEqual([200, 400, 400]);
  });

  it("is answered alike for an account that does not exist, and nothing is sent", async () => {
    const { username } = await signedUp();
    const { outbox, post } = appWithMail();
    const known = await post("password-recovery", { username });
    const unknown = await post("password-recovery", { username: uniqueEmail() });
    expect([unknown.status, await unknown.text()]).toEqual([known.status, await known.text()]);
    expect(outbox).toHaveLength(1);
  });

  it("goes with the account", async () => {
    const { username, token: session } = await signedUp();
    const { outbox, post } = appWithMail();
    await post("password-recovery", { username });
    expect((await send("DELETE", `/api/v1/users/${encodeURIComponent(username)}`, undefined, session)).status).toBe(
      200,
    );
    const token = tokenIn(outbox[0]?.text ?? "");
    expect((await post("reset-password", { token, new_password: OTHER_PASSWORD })).status).toBe(400);
  });

  it("is of no use any more once the password was changed", async () => {
    const { username, token: session } = await signedUp();
    const { outbox, post } = appWithMail();
    await post("password-recovery", { username });
    const path = `/api/v1/users/${encodeURIComponent(username)}`;
    expect((await send("PUT", path, { password: OTHER_PASSWORD }, session)).status).toBe(200);
    const token = tokenIn(outbox[0]?.text ?? "");
    expect((await post("reset-password", { token, new_password: PASSWORD })).status).toBe(400);
  });

  it("is no use after a quarter of an hour", async () => {
    const { username } = await signedUp();
    const { outbox, post } = appWithMail();
    await post("password-recovery", { username });
    const token = tokenIn(outbox[0]?.text ?? "");
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: now + 15 * 60_000 + 1 });
    try {
      expect((await post("reset-password", { token, new_password: OTHER_PASSWORD })).status).toBe(400);
    } finally {
      vi.useRealTimers();
    }
    expect((await post("reset-password", { token, new_password: OTHER_PASSWORD })).status).toBe(200);
  });

  it("is asked for five times a minute at the most", async () => {
    const username = uniqueEmail();
    const { post } = appWithMail();
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await post("password-recovery", { username })).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  });

  it("is guessed at ten times a minute at the most, from one address", async () => {
    const { post } = appWithMail();
    const guess = async (address: string) =>
      (await post("reset-password", { token: "x".repeat(43), new_password: PASSWORD }, { "CF-Connecting-IP": address }))
        .status;
    const address = crypto.randomUUID();
    const statuses: number[] = [];
    for (let i = 0; i < 11; i++) statuses.push(await guess(address));
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 400), 429]);
    expect(await guess(crypto.randomUUID())).toBe(400);
  });

  it("is not guessed at more often by whoever gives addresses of its own to a proxy that puts the true one behind them", async () => {
    const { post } = appWithMail({ CLIENT_ADDRESS_HEADER: "X-Forwarded-For" });
    const address = crypto.randomUUID();
    const statuses: number[] = [];
    for (let i = 0; i < 11; i++) {
      const headers = { "X-Forwarded-For": `10.0.0.${i}, ${address}` };
      statuses.push((await post("reset-password", { token: "x".repeat(43), new_password: PASSWORD }, headers)).status);
    }
    expect(statuses.at(-1)).toBe(429);
  });

  it.each([
    [{ MAIL_FROM: "" }, "The setting MAIL_FROM is missing."],
    [{ PUBLIC_URL: "" }, "The setting PUBLIC_URL is missing."],
  ])(
    "is answered as ever without the means to send, %j, and the log says what is missing",
    async (changes, missing) => {
      const { username } = await signedUp();
      const { outbox, post } = appWithMail(changes);
      const log = vi.spyOn(console, "error").mockImplementation(() => {});
      try {
        expect((await post("password-recovery", { username })).status).toBe(200);
        expect(outbox).toEqual([]);
        expect(log.mock.calls.flat().join()).toContain(missing);
      } finally {
        log.mockRestore();
      }
    },
  );
});
