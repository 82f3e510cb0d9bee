import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../../scripts/harness/product.ts";

/** A command that waits for an interruption, and then cleans up for as long as its argument says. */
const COMMAND = `
  import { runCommand, print } from ${JSON.stringify(pathOf("cli.ts"))};
  import { interruption, unlessAborted } from ${JSON.stringify(pathOf("interruption.ts"))};
  await runCommand(async () => {
    const signal = interruption("Stopping.");
    const work = new Promise((resolve) => setTimeout(resolve, 60_000));
    print("Started.");
    try {
      await unlessAborted(work, signal);
    } finally {
      await new Promise((resolve) => setTimeout(resolve, Number(process.argv[1])));
      print("Cleaned up.");
    }
  });`;

function pathOf(file: string): string {
  return fileURLToPath(new URL(`../../../src/programs/shared/${file}`, import.meta.url));
}

describe("an interrupted command", () => {
  let child: ChildProcess;
  let output: string;
  let ended: Promise<number | null>;

  const start = async (cleanUpMs: number) => {
    output = "";
    const args = ["--input-type=module", "-e", COMMAND, String(cleanUpMs)];
    child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    child.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    ended = new Promise((resolve) => child.once("close", resolve));
    await until(() => output.includes("Started."));
  };

  afterEach(() => void child.kill("SIGKILL"));

  it("cleans up once, even though npm sends the terminal's Ctrl-C a second time", async () => {
    await start(1_000);
    child.kill("SIGINT");
    await until(() => output.includes("Stopping."));
    child.kill("SIGINT");
    expect(await ended).toBe(130);
    expect(output).toBe("Started.\nStopping.\nCleaned up.\n");
  });

  it("exits at once at a later Ctrl-C", async () => {
    await start(60_000);
    child.kill("SIGINT");
    await until(() => output.includes("Stopping."));
    await sleep(600);
    child.kill("SIGINT");
    expect(await ended).toBe(130);
    expect(output).toBe("Started.\nStopping.\n");
  });
});
