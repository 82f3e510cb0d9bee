import { randomInt } from "node:crypto";
import { parseCommand, print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { endedToken } from "../accounts.ts";
import { ApiClient, untilTownsLoaded } from "../client.ts";
import { withProduct } from "../product.ts";
import { type Finding, type FuzzOptions, fuzz, type Outcome } from "./fuzz.ts";
import { newSecret } from "./fuzz-accounts.ts";
import { logFindings } from "./judge.ts";

const URL_HELP = "Test a running service; ADMIN_USERNAME and ADMIN_PASSWORD must be the login of an administrator";
const count = { type: "number", value: "n", isInteger: true } as const;

const SPEC = {
  name: "npm run fuzz",
  summary: `Sends valid, almost valid and hostile requests for every operation of /openapi.json, as every kind of caller, and checks each
response against the document: no 5xx, no timeout, nothing undocumented, no leaked data, and unchanged data of others. Starts the
product on this machine, on free ports and in a temporary folder, unless --url names a service. Deletes what it creates there, but do not
use it on a service that others depend on.`,
  options: {
    seconds: { ...count, description: "Run for so long", default: 60, min: 1, max: 7 * 86_400 },
    seed: { ...count, description: "Choose the requests (random)", min: 0, max: 2 ** 31 - 1 },
    rate: { ...count, description: "Limit requests per second", default: 100, min: 1, max: 2_000 },
    url: { type: "string", value: "url", description: URL_HELP },
  },
} as const;

type CommandOptions = Omit<FuzzOptions, "url" | "admin">;

function fuzzProduct(options: CommandOptions): Promise<Outcome> {
  const [username, password, enrolment] = ["admin@fuzz.invalid", newSecret(), newSecret()];
  // With a closed signup, that operation would return 403 only.
  const login = { ADMIN_USERNAME: username, ADMIN_PASSWORD: password };
  const env = { ...login, ENROLMENT_TOKEN: enrolment, SIGNUP: "open", NEW_USERS: "operator" };
  return withProduct("fuzz", env, options.signal, async (product) => {
    const client = new ApiClient(product.url);
    await untilTownsLoaded(client, await client.logIn(username, password));
    const tokens = { ended: await endedToken(product.dataDir, username), enrolment };
    const outcome = await fuzz({ ...options, url: product.url, admin: { username, password }, tokens });
    const logged = logFindings(product.output);
    logged.forEach(printFinding);
    return { ...outcome, findings: [...outcome.findings, ...logged] };
  });
}

async function fuzzService(url: string, options: CommandOptions): Promise<Outcome> {
  const { ADMIN_USERNAME: username, ADMIN_PASSWORD: password } = process.env;
  if (!username || !password)
    throw new UserError("Set ADMIN_USERNAME and ADMIN_PASSWORD to the login of an administrator.");
  return await fuzz({ ...options, url, admin: { username, password } });
}

const printFinding = ({ what, caller, curl }: Finding): void =>
  print(`\n✗ ${what}${caller === undefined ? "" : `\n  as ${caller}\n  ${curl}`}`);

function printStatuses({ statuses }: Outcome): void {
  const rows = [...statuses].toSorted(([a], [b]) => a.localeCompare(b));
  const width = Math.max(...rows.map(([operation]) => operation.length));
  print("");
  for (const [operation, counts] of rows) {
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const each = [...counts].toSorted().map(([status, count]) => `${status}: ${count}`);
    print(`${operation.padEnd(width)} ${String(total).padStart(7)}   ${each.join("  ")}`);
  }
}

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { seconds, seed = randomInt(2 ** 31), rate: perSecond, url } = command.values;
  print(`Seed ${seed}, ${seconds} s.`);
  const options = { seconds, seed, perSecond, signal: interruption(CLEANUP_NOTICE), onFinding: printFinding };
  const outcome = await (url === undefined ? fuzzProduct(options) : fuzzService(url.replace(/\/$/, ""), options));
  printStatuses(outcome);
  print(`\n${outcome.requests} requests with seed ${seed}, ${outcome.findings.length} findings.`);
  if (outcome.findings.length > 0) process.exitCode = 1;
});
