import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { identifyProcess } from "../../../src/programs/shared/system.ts";
import { type Component, Supervisor } from "../../../src/programs/stack/supervisor.ts";

/** A part that runs a line of JavaScript with `file(name)` at hand, and is ready once it has written its own file. */
describe("the supervisor", () => {
  let folder: string;
  let supervisor: Supervisor;
  let printed: string;

  const path = (name: string) => join(folder, name);
  const part = (name: string, script: string): Component => ({
    name,
    command: process.execPath,
    args: ["-e", `const fs = require("fs"); const file = (n) => ${JSON.stringify(folder)} + "/" + n; ${script}`],
    ready: async () => existsSync(path(name)),
    graceMs: 300,
  });
  const forever = "setInterval(() => {}, 1000);";
  const runs = (name: string, script = "") => part(name, `fs.writeFileSync(file("${name}"), ""); ${script} ${forever}`);

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "supervisor-"));
    supervisor = new Supervisor();
    printed = "";
    vi.spyOn(console, "log").mockImplementation((line: string) => {
      printed += `${line}\n`;
    });
  });

  afterEach(async () => {
    await supervisor.stop();
    rmSync(folder, { recursive: true, force: true });
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });

  it("tells a part the secrets that are meant for it, and none of its own", async () => {
    for (const name of ["SOME_PASSWORD", "MAIL_URL"]) vi.stubEnv(name, "the supervisor's");
    const says = 'fs.writeFileSync(file("env"), JSON.stringify(process.env));';
    await supervisor.start({ ...runs("a", says), env: { ITS_TOKEN: "the part's" } });
    await until(() => existsSync(path("env")));
    const env = JSON.parse(readFileSync(path("env"), "utf8")) as Record<string, string>;
    expect([env.SOME_PASSWORD, env.MAIL_URL]).toEqual([undefined, undefined]);
    expect([env.ITS_TOKEN, env.PATH]).toEqual(["the part's", process.env.PATH]);
  });

  it("names a part that dies, shows its last lines and starts it again", async () => {
    await supervisor.start(runs("a", 'console.log("last words");'));
    await until(() => printed.includes("last words"));
    const first = supervisor.pids.a;
    process.kill(first ?? 0, "SIGKILL");
    await until(() => printed.includes("a is back."));
    expect(supervisor.pids.a).not.toBe(first);
    expect(printed).toMatch(/a ended unexpectedly \(SIGKILL\)\.\na +│ last words\nStarting a again in 0\.25 s\./);
  });

  it("prints JSON lines as they are if its output is not a terminal", async () => {
    await supervisor.start(runs("a", 'console.log(JSON.stringify({ level: "info" }));'));
    await until(() => printed.includes("level"));
    expect(printed).toBe('{"level":"info"}\n');
  });

  it("gives up on a part that dies five times within a minute, after growing pauses", async () => {
    const start = supervisor.start(part("b", 'console.log("cannot run"); process.exit(3);'));
    await expect(start).rejects.toThrow("b ended 5 times within a minute; giving up.");
    await expect(supervisor.fatal).rejects.toThrow();
    expect(printed.match(/again in [\d.]+ s/g)).toEqual([
      "again in 0.25 s",
      "again in 0.5 s",
      "again in 1 s",
      "again in 2 s",
    ]);
  });

  it("waits for a part that dies before it is ready, and then is", async () => {
    const script = `if (!fs.existsSync(file("tried"))) { fs.writeFileSync(file("tried"), ""); process.exit(1); } fs.writeFileSync(file("c"), "");`;
    await supervisor.start(part("c", `${script} ${forever}`));
    expect(existsSync(path("c"))).toBe(true);
  });

  it("says so when a part cannot be started at all", async () => {
    const start = supervisor.start({ ...runs("d"), command: path("no such program") });
    await expect(start).rejects.toThrow(/d cannot be started/);
  });

  it("ends the parts in reverse, also one that will not hear, and their children with them", async () => {
    const noteEnd = (name: string) =>
      `process.on("SIGTERM", () => { fs.appendFileSync(file("ends"), "${name} "); process.exit(0); });`;
    await supervisor.start(runs("first", noteEnd("first")));
    await supervisor.start(runs("deaf", 'process.on("SIGTERM", () => fs.appendFileSync(file("ends"), "deaf "));'));
    const child = `const { pid } = require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(forever)}]); fs.writeFileSync(file("child"), String(pid));`;
    await supervisor.start(runs("last", `${noteEnd("last")} ${child}`));
    await until(() => existsSync(path("child")));
    const pids = [...Object.values(supervisor.pids), Number(readFileSync(path("child"), "utf8"))];
    expect(pids.every((pid) => identifyProcess(pid) !== undefined)).toBe(true);

    await supervisor.stop();
    expect(readFileSync(path("ends"), "utf8")).toBe("last deaf first ");
    expect(pids.filter((pid) => identifyProcess(pid) !== undefined)).toEqual([]);
  });
});
