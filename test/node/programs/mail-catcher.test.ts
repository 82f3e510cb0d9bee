import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  mailCatcherComponent,
  mailFolder,
  mailUrl,
} from "../../../src/programs/stack/components/mail-catcher-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { SECRET_MARK } from "../../support/secret-mark.ts";

const token = `${SECRET_MARK}-mail-token`;
const MESSAGE = { from: "a@example.com", to: "b@example.com", subject: "s", text: "t", html: "h" };
const JSON_TYPE = { "Content-Type": "application/json" };

describe("the mail catcher", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "controller-mail-"));
  const supervisor = new Supervisor();
  let url: string;
  let origin: string;

  beforeAll(async () => {
    const port = await anyFreePort();
    url = mailUrl({ port, token });
    origin = new URL(url).origin;
    const component = mailCatcherComponent({ dataDir, port, token });
    expect(component.args.join(" ")).not.toContain(token);
    await supervisor.start(component);
  });
  afterAll(async () => {
    await supervisor.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const post = (to: string, headers: Record<string, string>, body = JSON.stringify(MESSAGE)) =>
    fetch(to, { method: "POST", headers, body });

  it("writes a message to a file that only its owner can read", async () => {
    const body = JSON.stringify({ ...MESSAGE, to: "mailer@example.com" });
    expect((await post(url, JSON_TYPE, body)).status).toBe(204);
    const [name = ""] = readdirSync(mailFolder(dataDir)).filter((file) => file.includes("mailer@"));
    const file = join(mailFolder(dataDir), name);
    expect(readFileSync(file, "utf8")).toContain("To: mailer@example.com\r\n");
    expect([statSync(file).mode & 0o777, statSync(mailFolder(dataDir)).mode & 0o777]).toEqual([0o600, 0o700]);
  });

  it.each([
    ["a message without the token", () => post(`${origin}/`, JSON_TYPE), 401],
    ["a message with another token", () => post(`${origin}/${token}x`, JSON_TYPE), 401],
    ["a GET without the token", () => fetch(`${origin}/`), 401],
    ["a post of a web page as text", () => post(`${origin}/`, { Origin: "https://page.example.com" }), 401],
    ["text with the token", () => post(url, { "Content-Type": "text/plain" }), 415],
    ["a GET with the token", () => fetch(url), 405],
    [
      "a message that is too long",
      () => post(url, JSON_TYPE, JSON.stringify({ ...MESSAGE, text: "x".repeat(70_000) })),
      413,
    ],
    ["a body that is not JSON", () => post(url, JSON_TYPE, "x"), 422],
    [
      "a line break in a header",
      () => post(url, JSON_TYPE, JSON.stringify({ ...MESSAGE, subject: "a\r\nBcc: c" })),
      422,
    ],
  ])("rejects %s", async (_what, send, status) => {
    const before = readdirSync(mailFolder(dataDir));
    const response = await send();
    expect([response.status, await response.text()]).toEqual([status, ""]);
    expect(readdirSync(mailFolder(dataDir))).toEqual(before);
  });

  it("rejects a message of unknown length, and a caller without the token before the body arrives", async () => {
    const statusOf = (to: string, headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = request(to, { method: "POST", headers }, ({ statusCode }) => {
          sent.destroy();
          resolve(statusCode);
        });
        sent.on("error", reject);
        sent.flushHeaders();
      });
    expect(await statusOf(url, { ...JSON_TYPE, "Transfer-Encoding": "chunked" })).toBe(413);
    expect(await statusOf(origin, { ...JSON_TYPE, "Content-Length": "1000" })).toBe(401);
  });
});
