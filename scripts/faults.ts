import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { killUnderTelemetry, PARTS, type Part } from "./faults/telemetry.ts";
import { Refused, red, say } from "./stack/console.ts";
import { Product } from "./trial/product.ts";

const HELP = `npm run faults -- telemetry

Kills parts of the product, again and again, while agents send telemetry over HTTP and MQTT, and compares what was acknowledged with
what is there in the end. Everything runs on this machine, on free ports and in a temporary folder, and goes when it is done.

  --kills <n>       how often each part is killed (10)
  --parts <a,b,…>   which parts (${PARTS.join(",")})`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      kills: { type: "string", default: "10" },
      parts: { type: "string", default: PARTS.join() },
    },
  });
  if (values.help) return say(HELP);
  const kills = Number(values.kills);
  const parts = values.parts.split(",");
  if (positionals[0] !== "telemetry") throw new Refused(`There is no suite "${positionals[0] ?? ""}". Try --help.`);
  if (!(Number.isInteger(kills) && kills > 0 && kills <= 1_000))
    throw new Refused("--kills must be a number from 1 to 1000.");
  const isPart = (name: string): name is Part => (PARTS as readonly string[]).includes(name);
  if (!parts.every(isPart)) throw new Refused(`--parts must be of ${PARTS.join(", ")}.`);

  const folder = mkdtempSync(join(tmpdir(), "controller-faults-"));
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  say("Starting the product.");
  const product = await Product.run("start", join(folder, "data"));
  try {
    let isExact = true;
    for (const part of parts) {
      say(`\nKilling the ${part} ${kills} times under load.`);
      const outcome = await killUnderTelemetry(product, part, kills, stop.signal);
      const { acknowledgedHttp, acknowledgedMqtt, lost, doubled, accountFailures, recoveredMs } = outcome;
      isExact &&= lost === 0 && doubled === 0;
      const longestS = (Math.max(0, ...recoveredMs) / 1000).toFixed(1);
      say(
        `  acknowledged: ${acknowledgedHttp} samples over HTTP, ${acknowledgedMqtt} over MQTT\n` +
          `  lost ${lost}, doubled ${doubled}; back after ${longestS} s at the longest; ` +
          `accounts refused ${accountFailures} times`,
      );
    }
    if (!isExact) process.exitCode = 1;
  } finally {
    await product.interrupt();
    rmSync(folder, { recursive: true, force: true });
  }
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  say(red(error.message));
  process.exitCode = 1;
}
