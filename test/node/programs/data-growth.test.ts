import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { binPath } from "../../../src/programs/shared/system.ts";
import { mailCatcherComponent, mailUrl } from "../../../src/programs/stack/components/mail-catcher-process.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { removeEmptyObjects } from "../../../src/programs/stack/prune-objects.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "data-growth-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the files of Durable Objects", () => {
  /** PUT stores data in an object, DELETE deletes all its data, GET returns whether it has data. */
  const WORKER = `import { DurableObject } from "cloudflare:workers";
export class Sample extends DurableObject {
  put() { this.ctx.storage.sql.exec("CREATE TABLE sample (x)"); }
  async delete() { await this.ctx.storage.deleteAll(); }
  get() { return this.ctx.storage.sql.exec("SELECT count(*) AS n FROM sqlite_master WHERE name = 'sample'").one().n; }
}
export default {
  async fetch({ method, url }, { SAMPLES }) {
    const sample = SAMPLES.get(SAMPLES.idFromName(new URL(url).pathname));
    return Response.json((await sample[method.toLowerCase()]()) ?? null);
  },
};`;

  async function withWorkerd(work: (url: string) => Promise<void>): Promise<void> {
    const port = await anyFreePort();
    writeFileSync(join(folder, "worker.js"), WORKER);
    writeFileSync(
      join(folder, "workerd.capnp"),
      `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "samples", worker = .samples),
    (name = "objects", disk = (path = ${JSON.stringify(join(folder, "objects"))}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "samples")],
);
const samples :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-08-15",
  bindings = [(name = "SAMPLES", durableObjectNamespace = "Sample")],
  durableObjectNamespaces = [(className = "Sample", uniqueKey = "Sample", enableSql = true)],
  durableObjectStorage = (localDisk = "objects"),
);
`,
    );
    const supervisor = new Supervisor();
    const url = `http://127.0.0.1:${port}`;
    await supervisor.start({
      name: "workerd",
      command: binPath("workerd"),
      args: ["serve", join(folder, "workerd.capnp")],
      ready: async () => (await fetch(`${url}/ready`)).ok,
    });
    try {
      await work(url);
    } finally {
      await supervisor.stop();
    }
  }

  it("are deleted if the object has deleted all its data", async () => {
    const objects = join(folder, "objects");
    mkdirSync(objects);
    await withWorkerd(async (url) => {
      for (const name of ["kept", "deleted"]) await fetch(`${url}/${name}`, { method: "PUT" });
      await fetch(`${url}/deleted`, { method: "DELETE" });
    });
    // An object that only received a GET is empty, too.
    expect(removeEmptyObjects(objects)).toBeGreaterThanOrEqual(1);
    await withWorkerd(async (url) => {
      expect(await (await fetch(`${url}/kept`)).json()).toBe(1);
      expect(await (await fetch(`${url}/deleted`)).json()).toBe(0);
      await fetch(`${url}/deleted`, { method: "PUT" });
      expect(await (await fetch(`${url}/deleted`)).json()).toBe(1);
    });
  });
});

describe("the folder of outgoing mail", () => {
  it("keeps the last thousand messages", async () => {
    const port = await anyFreePort();
    const supervisor = new Supervisor();
    const token = "mail-token";
    await supervisor.start(mailCatcherComponent({ dataDir: folder, port, token }));
    for (let day = 0; day < 1_005; day++) {
      const date = new Date(day * 86_400_000).toISOString().replaceAll(":", "-");
      writeFileSync(join(folder, "mail", `${date}-old@example.com.eml`), "");
    }
    const message = { from: "a@example.com", to: "new@example.com", subject: "s", text: "t", html: "h" };
    const response = await fetch(mailUrl({ port, token }), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(message),
    });
    await supervisor.stop();
    expect(response.status).toBe(204);
    const left = readdirSync(join(folder, "mail")).toSorted();
    expect(left).toHaveLength(1_000);
    expect(left.at(-1)).toMatch(/new@example\.com\.eml$/);
  });
});
