import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { endedToken } from "../accounts.ts";
import { Product } from "../product.ts";
import { type Finding, type FuzzOptions, fuzz, type Outcome } from "./fuzz.ts";
import { newSecret } from "./fuzz-accounts.ts";
import { logFindings } from "./request-log-file.ts";

const HELP = `npm run fuzz

Asks the service for every operation of its /openapi.json with requests that are valid, nearly valid and hostile, as every kind of
caller, and holds each answer against the document: never a 5xx, never a hang, nothing undocumented, nothing leaked, and all
data as it was. Without --url it runs the product on this machine, on free ports and in a temporary folder.

  --seconds <n>   how long (60)
  --seed <n>      which requests; a run prints its own (random)
  --rate <n>      requests a second at the most (100)
  --url <url>     a service that runs already; ADMIN_USERNAME and ADMIN_PASSWORD are an administrator's there. What the
                  run makes, it removes. Not for a service that others depend on.`;

interface Arguments {
  seconds: number;
  seed: number;
  rate: number;
  url: string | undefined;
}

function readArguments(): Arguments | undefined {
  const { values } = parseArgs({
    options: {
      help: { type: "boolean", short: "h", default: false },
      seconds: { type: "string", default: "60" },
      seed: { type: "string", default: String(randomInt(2 ** 31)) },
      rate: { type: "string", default: "100" },
      url: { type: "string" },
    },
  });
  if (values.help) return undefined;
  const whole = (name: "seconds" | "seed" | "rate", min: number, max: number): number => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new UserError(`--${name} must be a whole number from ${min} to ${max}.`);
  };
  return {
    seconds: whole("seconds", 1, 7 * 86_400),
    seed: whole("seed", 0, 2 ** 31 - 1),
    rate: whole("rate", 1, 2_000),
    url: values.url?.replace(/\/$/, ""),
  };
}

/** On the product, run for this and nothing else. */
async function fuzzProduct(options: Omit<FuzzOptions, "url" | "admin">): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "controller-fuzz-"));
  const dataDir = join(folder, "data");
  const admin = { username: "admin@fuzz.invalid", password: newSecret() };
  const enrolment = newSecret();
  const env = {
    ADMIN_USERNAME: admin.username,
    ADMIN_PASSWORD: admin.password,
    ENROLMENT_TOKEN: enrolment,
    // Closed, the operation would answer nothing but 403.
    SIGNUP: "open",
  };
  let product: Product | undefined;
  try {
    print("Starting the product.");
    product = await Product.run("start", dataDir, env, { signal: options.signal });
    const tokens = { ended: await endedToken(dataDir, admin.username), enrolment };
    const outcome = await fuzz({ ...options, url: product.url, admin, tokens });
    for (const finding of logFindings(product.output)) {
      outcome.findings.push(finding);
      options.onFinding?.(finding);
    }
    return outcome;
  } finally {
    await product?.interrupt();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fuzzService(url: string, options: Omit<FuzzOptions, "url" | "admin">): Promise<Outcome> {
  const { ADMIN_USERNAME: username, ADMIN_PASSWORD: password } = process.env;
  if (!username || !password) throw new UserError("ADMIN_USERNAME and ADMIN_PASSWORD must be an administrator's.");
  return await fuzz({ ...options, url, admin: { username, password } });
}

function sayFinding({ what, caller, curl }: Finding): void {
  print(`\n✗ ${what}${caller === "" ? "" : `\n  as ${caller}`}${curl === "" ? "" : `\n  ${curl}`}`);
}

function sayTable({ statuses }: Outcome): void {
  const rows = [...statuses].toSorted(([a], [b]) => a.localeCompare(b));
  const width = Math.max(...rows.map(([operation]) => operation.length));
  print("");
  for (const [operation, counts] of rows) {
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const each = [...counts].toSorted().map(([status, count]) => `${status}: ${count}`);
    print(`${operation.padEnd(width)} ${String(total).padStart(7)}   ${each.join("  ")}`);
  }
}

async function main(): Promise<void> {
  const given = readArguments();
  if (given === undefined) return print(HELP);
  const { seconds, seed, rate: perSecond, url } = given;
  print(`Seed ${seed}, ${seconds} s.`);
  const options = { seconds, seed, perSecond, signal: interruption(CLEANUP_NOTICE), onFinding: sayFinding };
  const outcome = await (url === undefined ? fuzzProduct(options) : fuzzService(url, options));
  sayTable(outcome);
  print(`\n${outcome.requests} requests with seed ${seed}, ${outcome.findings.length} findings.`);
  if (outcome.findings.length > 0) process.exitCode = 1;
}

await runCommand(main);
