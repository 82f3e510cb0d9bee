import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { appWith, logIn, PASSWORD, send, signedUp, uniqueEmail } from "../support.ts";

const OTHER_PASSWORD = `${PASSWORD} anew`;
const PUBLIC_URL = "https://controller.example.com";

/** Returns an app whose e-mail binding keeps the messages. */
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
  it("is replaced through an e-mailed link that works once and invalidates earlier tokens", async () => {
    const { username, token: accessToken } = await signedUp();
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
      .poll(async () => (await send("GET", "/api/v1/users/me", undefined, accessToken)).status, {
        timeout: 6_000,
        interval: 200,
      })
      .toBe(401);
  });

  it("can be replaced with any of several links, until one is used", async () => {
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

  it("gets the same response for an unknown account, and no message is sent", async () => {
    const { username } = await signedUp();
    const { outbox, post } = appWithMail();
    const known = await post("password-recovery", { username });
    const unknown = await post("password-recovery", { username: uniqueEmail() });
    expect([unknown.status, await unknown.text()]).toEqual([known.status, await known.text()]);
    expect(outbox).toHaveLength(1);
  });

  it("cannot be replaced after the account is deleted", async () => {
    const { username, token: accessToken } = await signedUp();
    const { outbox, post } = appWithMail();
    await post("password-recovery", { username });
    expect((await send("DELETE", `/api/v1/users/${encodeURIComponent(username)}`, undefined, accessToken)).status).toBe(
      200,
    );
    const token = tokenIn(outbox[0]?.text ?? "");
    expect((await post("reset-password", { token, new_password: OTHER_PASSWORD })).status).toBe(400);
  });

  it("cannot be replaced through an earlier link after the password was changed", async () => {
    const { username, token: accessToken } = await signedUp();
    const { outbox, post } = appWithMail();
    await post("password-recovery", { username });
    const path = `/api/v1/users/${encodeURIComponent(username)}`;
    expect((await send("PUT", path, { password: OTHER_PASSWORD }, accessToken)).status).toBe(200);
    const token = tokenIn(outbox[0]?.text ?? "");
    expect((await post("reset-password", { token, new_password: PASSWORD })).status).toBe(400);
  });

  it("cannot be replaced through a link older than 15 minutes", async () => {
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

  it("can be requested at most five times per minute", async () => {
    const username = uniqueEmail();
    const { post } = appWithMail();
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await post("password-recovery", { username })).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  });

  it("allows at most ten wrong tokens per minute and address", async () => {
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

  it("counts wrong tokens by the last address of the proxy's header, which a client cannot forge", async () => {
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
    "gets the same response if mail is not configured, and the log names the missing setting: %j",
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
