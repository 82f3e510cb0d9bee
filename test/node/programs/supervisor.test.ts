import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { identifyProcess } from "../../../src/programs/shared/system.ts";
import { type Component, Supervisor } from "../../../src/programs/stack/supervisor.ts";

/** The components run a line of JavaScript with a function `file(name)`. A component is ready when it has written its own file. */
describe("the supervisor", () => {
  let folder: string;
  let supervisor: Supervisor;
  let printed: string;

  const path = (name: string) => join(folder, name);
  const component = (name: string, script: string): Component => ({
    name,
    command: process.execPath,
    args: ["-e", `const fs = require("fs"); const file = (n) => ${JSON.stringify(folder)} + "/" + n; ${script}`],
    ready: async () => existsSync(path(name)),
    graceMs: 300,
  });
  const forever = "setInterval(() => {}, 1000);";
  const runs = (name: string, script = "") =>
    component(name, `fs.writeFileSync(file("${name}"), ""); ${script} ${forever}`);

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

  it("passes a component its own secrets, but not those of the environment", async () => {
    for (const name of ["SOME_PASSWORD", "MAIL_URL"]) vi.stubEnv(name, "the supervisor's");
    const says = 'fs.writeFileSync(file("env"), JSON.stringify(process.env));';
    await supervisor.start({ ...runs("a", says), env: { ITS_TOKEN: "the component's" } });
    await until(() => existsSync(path("env")));
    const env = JSON.parse(readFileSync(path("env"), "utf8")) as Record<string, string>;
    expect([env.SOME_PASSWORD, env.MAIL_URL]).toEqual([undefined, undefined]);
    expect([env.ITS_TOKEN, env.PATH]).toEqual(["the component's", process.env.PATH]);
  });

  it("reports a component that exits, prints its last lines and restarts it", async () => {
    await supervisor.start(runs("a", 'console.log("last words");'));
    await until(() => printed.includes("last words"));
    const first = supervisor.pids.a;
    process.kill(first ?? 0, "SIGKILL");
    await until(() => printed.includes("a is back."));
    expect(supervisor.pids.a).not.toBe(first);
    expect(printed).toMatch(
      /a ended unexpectedly \(SIGKILL\)\. Its last lines:\na +│ last words\nRestarting a in 0\.25 s\./,
    );
  });

  it("prints JSON lines unchanged if its output is not a terminal", async () => {
    await supervisor.start(runs("a", 'console.log(JSON.stringify({ level: "info" }));'));
    await until(() => printed.includes("level"));
    expect(printed).toBe('{"level":"info"}\n');
  });

  it("gives up on a component that exits five times within a minute, after increasing pauses", async () => {
    const start = supervisor.start(component("b", 'console.log("cannot run"); process.exit(3);'));
    await expect(start).rejects.toThrow("b ended 5 times within a minute. Giving up.");
    await expect(supervisor.fatal).rejects.toThrow();
    expect(printed.match(/Restarting b in [\d.]+ s/g)).toEqual([
      "Restarting b in 0.25 s",
      "Restarting b in 0.5 s",
      "Restarting b in 1 s",
      "Restarting b in 2 s",
    ]);
  });

  it("waits for a component that exits before it is ready, and is ready after a restart", async () => {
    const script = `if (!fs.existsSync(file("tried"))) { fs.writeFileSync(file("tried"), ""); process.exit(1); } fs.writeFileSync(file("c"), "");`;
    await supervisor.start(component("c", `${script} ${forever}`));
    expect(existsSync(path("c"))).toBe(true);
  });

  it("rejects a component whose program does not exist", async () => {
    const start = supervisor.start({ ...runs("d"), command: path("no such program") });
    await expect(start).rejects.toThrow(/d cannot be started/);
  });

  it("stops components in reverse order, killing unresponsive ones and their children", async () => {
    const recordEnd = (name: string) =>
      `process.on("SIGTERM", () => { fs.appendFileSync(file("ends"), "${name} "); process.exit(0); });`;
    await supervisor.start(runs("first", recordEnd("first")));
    await supervisor.start(
      runs("unresponsive", 'process.on("SIGTERM", () => fs.appendFileSync(file("ends"), "unresponsive "));'),
    );
    const child = `const { pid } = require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(forever)}]); fs.writeFileSync(file("child"), String(pid));`;
    await supervisor.start(runs("last", `${recordEnd("last")} ${child}`));
    // The file exists before it has its content.
    await until(() => existsSync(path("child")) && readFileSync(path("child"), "utf8") !== "");
    const pids = [...Object.values(supervisor.pids), Number(readFileSync(path("child"), "utf8"))];
    expect(pids.every((pid) => identifyProcess(pid) !== undefined)).toBe(true);

    await supervisor.stop();
    expect(readFileSync(path("ends"), "utf8")).toBe("last unresponsive first ");
    expect(pids.filter((pid) => identifyProcess(pid) !== undefined)).toEqual([]);
  });
});
