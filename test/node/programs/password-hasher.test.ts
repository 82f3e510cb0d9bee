import { request } from "node:http";
import { availableParallelism } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRemotePasswords } from "../../../src/auth/passwords.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { nativePasswords } from "../../../src/programs/password-hasher/native-passwords.ts";
import { passwordHasherComponent } from "../../../src/programs/stack/components/password-hasher-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { SECRET_MARK } from "../../support/secret-mark.ts";

const TOKEN = `${SECRET_MARK}-passwords-token`;
const PASSWORD = `${SECRET_MARK} horse battery`;

describe("the password hasher", () => {
  const supervisor = new Supervisor();
  let url: string;

  beforeAll(async () => {
    const port = await anyFreePort();
    url = `http://127.0.0.1:${port}/`;
    await supervisor.start(passwordHasherComponent({ port, token: TOKEN }));
  });
  afterAll(async () => await supervisor.stop());

  const send = (body: object | string, signal?: AbortSignal, token = TOKEN) =>
    fetch(url, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}` },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...(signal && { signal }),
    });

  it("hashes passwords and verifies them", async () => {
    const { hash } = (await (await send({ password: PASSWORD })).json()) as { hash: string };
    expect(await nativePasswords.verify(hash, PASSWORD)).toBe(true);
    expect(await (await send({ password: PASSWORD, hash })).json()).toEqual({ matches: true });
    expect(await (await send({ password: `${PASSWORD}x`, hash })).json()).toEqual({ matches: false });
  });

  it("accepts the longest password that a login may send", async () => {
    expect((await send({ password: "\0".repeat(256), hash: await nativePasswords.hash("x") })).status).toBe(200);
  });

  it.each([
    [
      "a request without the token",
      () => fetch(url, { method: "POST", body: JSON.stringify({ password: PASSWORD }) }),
      401,
    ],
    ["a request with another token", () => send({ password: PASSWORD }, undefined, `${TOKEN}x`), 401],
    ["a body that is too long", () => send({ password: PASSWORD.repeat(1_000) }), 413],
    ["a body without a password", () => send({ hash: PASSWORD }), 422],
    ["a body that is not JSON", () => send(PASSWORD), 422],
  ])("rejects %s with an empty response", async (_what, request, status) => {
    const response = await request();
    expect([response.status, await response.text()]).toEqual([status, ""]);
  });

  it("rejects a caller without the token before the body arrives", async () => {
    const status = await new Promise((resolve, reject) => {
      const headers = { "Content-Type": "text/plain", "Content-Length": "1000", Origin: "https://page.example.com" };
      const sent = request(url, { method: "POST", headers }, ({ statusCode }) => {
        sent.destroy();
        resolve(statusCode);
      });
      sent.on("error", reject);
      sent.flushHeaders();
    });
    expect(status).toBe(401);
  });

  it("responds with an empty object to a malformed hash", async () => {
    expect(await (await send({ password: PASSWORD, hash: "none" })).json()).toEqual({});
  });

  it("sends spaces before the response while a request waits", async () => {
    const requests = Array.from({ length: 16 * availableParallelism() }, async () =>
      (await send({ password: PASSWORD })).text(),
    );
    const texts = await Promise.all(requests);
    expect(texts.filter((text) => /^ +\{/.test(text))).not.toHaveLength(0);
    for (const text of texts) expect(JSON.parse(text)).toEqual({ hash: expect.stringContaining("$argon2id$") });
  });

  it.each(["hash", "verify"] as const)(
    "is unavailable within two seconds if it stops in the middle of a %s",
    async (operation) => {
      const passwords = createRemotePasswords({ url, token: TOKEN });
      const known = await passwords.hash(PASSWORD);
      const send = () => (operation === "hash" ? passwords.hash(PASSWORD) : passwords.verify(known, PASSWORD));
      const pid = supervisor.pids.passwords;
      if (pid === undefined) throw new Error("The password hasher does not run");
      const requests = Array.from({ length: 20 * availableParallelism() }, send);
      const outcomes = Promise.allSettled(requests);
      // When the first request is done, all others have been accepted.
      await Promise.race(requests);
      process.kill(pid, "SIGSTOP");
      const stoppedMs = performance.now();
      try {
        const rejected = (await outcomes).filter(({ status }) => status === "rejected");
        expect(performance.now() - stoppedMs).toBeLessThan(2_000);
        expect(rejected).not.toHaveLength(0);
        for (const outcome of rejected) expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(Unavailable);
        // On a new connection or on a reused one.
        const againMs = await timeOf(() => expect(send()).rejects.toBeInstanceOf(Unavailable));
        expect(againMs).toBeLessThan(2_000);
      } finally {
        process.kill(pid, "SIGCONT");
      }
      expect(await passwords.verify(known, PASSWORD)).toBe(true);
    },
  );

  it("rejects requests beyond its queue with 503, and skips those whose client has disconnected", async () => {
    const queueLength = 64 * availableParallelism();
    const clients = new AbortController();
    const requests = Array.from({ length: 4 * queueLength }, () => send({ password: PASSWORD }, clients.signal));
    const statuses = (await Promise.all(requests)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(queueLength);
    clients.abort();
    const nextMs = await timeOf(async () => await (await send({ password: PASSWORD })).text());
    const oneMs = await timeOf(() => nativePasswords.hash(PASSWORD));
    // If the hasher processed all of them first, this request would be the 65th on its core.
    expect(nextMs).toBeLessThan(32 * oneMs);
  });
});

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
