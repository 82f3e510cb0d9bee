import { request } from "node:http";
import { availableParallelism } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRemotePasswords } from "../../../src/auth/remote-passwords.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { nativePasswords } from "../../../src/programs/password-hasher/native-passwords.ts";
import { passwordHasherComponent } from "../../../src/programs/stack/components/password-hasher-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { SECRET_MARK } from "../../support/secret-mark.ts";

const TOKEN = `${SECRET_MARK}-passwords-token`;
const PASSWORD = `${SECRET_MARK} horse battery`;

describe("the password service", () => {
  const supervisor = new Supervisor();
  let url: string;

  beforeAll(async () => {
    const port = await anyFreePort();
    url = `http://127.0.0.1:${port}/`;
    await supervisor.start(passwordHasherComponent({ port, token: TOKEN }));
  });
  afterAll(async () => await supervisor.stop());

  const ask = (question: object | string, signal?: AbortSignal, token = TOKEN) =>
    fetch(url, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}` },
      body: typeof question === "string" ? question : JSON.stringify(question),
      ...(signal && { signal }),
    });

  it("makes hashes and holds passwords against them", async () => {
    const { hash } = (await (await ask({ password: PASSWORD })).json()) as { hash: string };
    expect(await nativePasswords.verify(hash, PASSWORD)).toBe(true);
    expect(await (await ask({ password: PASSWORD, hash })).json()).toEqual({ matches: true });
    expect(await (await ask({ password: `${PASSWORD}x`, hash })).json()).toEqual({ matches: false });
  });

  it("takes the longest password that a login may try", async () => {
    expect((await ask({ password: "\0".repeat(256), hash: await nativePasswords.hash("x") })).status).toBe(200);
  });

  it.each([
    ["without the token", () => fetch(url, { method: "POST", body: JSON.stringify({ password: PASSWORD }) }), 401],
    ["with another token", () => ask({ password: PASSWORD }, undefined, `${TOKEN}x`), 401],
    ["a question that is too long", () => ask({ password: PASSWORD.repeat(1_000) }), 413],
    ["a question that is none", () => ask({ hash: PASSWORD }), 422],
    ["what is no JSON", () => ask(PASSWORD), 422],
  ])("refuses %s, in no words", async (_what, send, status) => {
    const response = await send();
    expect([response.status, await response.text()]).toEqual([status, ""]);
  });

  it("refuses a stranger before the body comes", async () => {
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

  it("answers nothing of a hash that is none", async () => {
    expect(await (await ask({ password: PASSWORD, hash: "none" })).text()).toBe("{}");
  });

  it("sends blanks to those that wait for their turn, in front of the answer", async () => {
    const asked = Array.from({ length: 16 * availableParallelism() }, async () =>
      (await ask({ password: PASSWORD })).text(),
    );
    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => /^ +\{/.test(answer))).not.toHaveLength(0);
    for (const answer of answers) expect(JSON.parse(answer)).toEqual({ hash: expect.stringContaining("$argon2id$") });
  });

  it.each(["hash", "verify"] as const)(
    "is unavailable within two seconds if it stops in the middle of a %s",
    async (what) => {
      const passwords = createRemotePasswords({ url, token: TOKEN });
      const known = await passwords.hash(PASSWORD);
      const ask = () => (what === "hash" ? passwords.hash(PASSWORD) : passwords.verify(known, PASSWORD));
      const pid = supervisor.pids.passwords;
      if (pid === undefined) throw new Error("The password service does not run");
      const asked = Array.from({ length: 20 * availableParallelism() }, ask);
      const outcomes = Promise.allSettled(asked);
      // When the first of them has its answer, all others have been accepted.
      await Promise.race(asked);
      process.kill(pid, "SIGSTOP");
      const stoppedMs = performance.now();
      try {
        const rejected = (await outcomes).filter(({ status }) => status === "rejected");
        expect(performance.now() - stoppedMs).toBeLessThan(2_000);
        expect(rejected).not.toHaveLength(0);
        for (const outcome of rejected) expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(Unavailable);
        // A connection that is new, or was in use before.
        const againMs = await timeOf(() => expect(ask()).rejects.toBeInstanceOf(Unavailable));
        expect(againMs).toBeLessThan(2_000);
      } finally {
        process.kill(pid, "SIGCONT");
      }
      expect(await passwords.verify(known, PASSWORD)).toBe(true);
    },
  );

  it("refuses at once what would wait too long, and leaves undone what nobody waits for any more", async () => {
    const places = 64 * availableParallelism();
    const crowd = new AbortController();
    const asked = Array.from({ length: 4 * places }, () => ask({ password: PASSWORD }, crowd.signal));
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(places);
    crowd.abort();
    const nextMs = await timeOf(async () => await (await ask({ password: PASSWORD })).text());
    const oneMs = await timeOf(() => nativePasswords.hash(PASSWORD));
    // Behind all of them it would have been the 65th on its core.
    expect(nextMs).toBeLessThan(32 * oneMs);
  });
});

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
