import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@libsql/client/http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { newSqldAccess, sqldComponent } from "../../../src/programs/stack/components/sqld.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";

describe("the libSQL server of the stack", () => {
  const folder = mkdtempSync(join(tmpdir(), "controller-sqld-"));
  const supervisor = new Supervisor();
  let origin: string;

  beforeAll(async () => {
    // sqld logs every rejected request.
    vi.spyOn(console, "log").mockImplementation(() => {});
    const [port, access] = [await anyFreePort(), await newSqldAccess()];
    origin = `http://127.0.0.1:${port}`;
    await supervisor.start(sqldComponent(folder, port, access.publicKey));
    const client = createClient({ url: origin, authToken: access.token });
    await client.batch(["CREATE TABLE secrets (line)", "INSERT INTO secrets VALUES ('ours')"]);
    client.close();
  });
  afterAll(async () => {
    await supervisor.stop();
    rmSync(folder, { recursive: true, force: true });
    vi.restoreAllMocks();
  });

  const SELECT = "SELECT * FROM secrets";
  const pipeline = { requests: [{ type: "execute", stmt: { sql: SELECT } }] };
  const batch = { batch: { steps: [{ stmt: { sql: SELECT } }] } };

  it.each([
    ["POST", "/", { statements: [SELECT] }],
    ["POST", "/v1/execute", { stmt: { sql: SELECT } }],
    ["POST", "/v1/batch", batch],
    ["POST", "/v2/pipeline", pipeline],
    ["POST", "/v3/pipeline", pipeline],
    ["POST", "/v3/cursor", batch],
    ["POST", "/v3-protobuf/pipeline", pipeline],
    ["GET", "/dump", undefined],
    ["GET", "/console", undefined],
    ["GET", "/metrics", undefined],
    ["GET", "/beta/listen?table=secrets&action=insert", undefined],
    ["GET", "/v1/namespaces/default/config", undefined],
    ["POST", "/v1/namespaces/default/create", {}],
  ])("rejects %s %s without a valid token, also from a web page", async (method, path, body) => {
    const another = await newSqldAccess();
    for (const headers of [
      { Origin: "https://page.example.com", "Content-Type": "text/plain" },
      { Authorization: `Bearer ${another.token}` },
    ]) {
      const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
      const response = await fetch(`${origin}${path}`, init);
      expect([401, 404]).toContain(response.status);
      expect(await response.text()).not.toContain("ours");
    }
  });

  it("rejects a WebSocket without a token", async () => {
    const socket = new WebSocket(origin.replace("http", "ws"), "hrana3");
    const response = new Promise<string>((resolve, reject) => {
      socket.on("message", (data) => resolve(String(data)));
      socket.on("close", () => resolve("closed"));
      socket.on("error", reject);
    });
    socket.on("open", () => socket.send(JSON.stringify({ type: "hello", jwt: null })));
    expect(await response).toMatch(/hello_error|closed/);
    socket.terminate();
  });
});
