import { spawn } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { print, red, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { fillGazetteer, migrateAccounts, migrateTelemetry } from "../../../src/programs/stack/migrations.ts";
import { eventually } from "../../harness/smoke/steps.ts";
import { check } from "./checks.ts";
import { deployWorker, putSecrets } from "./cloudflare.ts";
import { keysIn } from "./worker-secrets.ts";
import { readDeploySettings } from "./worker-settings.ts";

const HELP = `npm run deploy

Deploys the service to Cloudflare, after it has seen that this will work: settings and secrets, stores and broker, migrations, the
build. Says everything that is wrong at once, and then changes nothing. docs/cloudflare.md is the whole way.

  --settings <file>   lines NAME=value, for settings that the environment does not have
  --secrets <folder>  puts in service the keys in the folder's secrets.json, made where there are none yet, and
                      all secrets among the settings
  --migrate           applies the migrations that are missing: those that add something before the deployment, those that
                      take something away after it
  --name <name>       of the Worker, for a second one beside that of wrangler.toml
  --domain <domain>   of your own, instead of one at workers.dev
  --smoke             then runs \`npm run smoke\` on PUBLIC_URL (SMOKE_USERNAME, SMOKE_PASSWORD)
  --dry-run           looks at everything, wrangler's own dry run included, and changes nothing

Settings are those of the README. The ones that are secret (…_TOKEN, …_PASSWORD, …_KEY, MAIL_URL) are put by --secrets or by
\`npx wrangler secret put\`, the others go with the deployment. For wrangler: \`npx wrangler login\`, or CLOUDFLARE_API_TOKEN.`;

function readArguments() {
  const [text, flag] = [{ type: "string" }, { type: "boolean", default: false }] as const;
  const known = {
    settings: text,
    secrets: text,
    name: text,
    domain: text,
    migrate: flag,
    smoke: flag,
    "dry-run": flag,
  };
  return parseArgs({ options: { ...known, help: { ...flag, short: "h" } } }).values;
}

async function main(): Promise<void> {
  const { help, settings: file, secrets: secretsFolder, migrate, smoke, ...given } = readArguments();
  if (help) return print(HELP);
  const { name, domain, "dry-run": dryRun } = given;
  if (smoke && !(process.env.SMOKE_USERNAME && process.env.SMOKE_PASSWORD))
    throw new UserError("--smoke takes SMOKE_USERNAME and SMOKE_PASSWORD, an administrator's, from the environment.");
  const settings = readDeploySettings(process.env, file);
  const target = { name, domain };

  print("Looking at settings, secrets, stores and the build …");
  const checked = await check({ ...target, secretsFolder, migrate, dryRun }, settings);
  for (const note of checked.notes) print(`! ${note}`);
  for (const fault of checked.faults) print(red(`✗ ${fault}`));
  const { stores, later } = checked;
  if (checked.faults.length > 0 || stores === undefined) throw new UserError("Nothing was changed.");
  print(`✓ All is well. The Worker is ${Math.round(checked.bundleBytes / 1024)} KiB gzip.`);

  if (dryRun) return print("Nothing was changed: this was a dry run.");
  if (secretsFolder !== undefined) {
    const secrets = { ...settings.secrets, ...(await keysIn(secretsFolder)) };
    await putSecrets(target, secrets);
    print(`✓ In service: ${Object.keys(secrets).join(", ")}`);
  }
  if (migrate) {
    await migrateAccounts(stores);
    await fillGazetteer(stores);
    await migrateTelemetry(stores, (file) => !later.includes(file.name));
    print("✓ The stores have what the new Worker needs.");
  }
  await deployWorker(target, settings.vars);
  if (migrate) await migrateTelemetry(stores);
  else if (later.length > 0)
    print(`When the new Worker is in service, npm run migrate -- --after-deploy applies ${later.join(", ")}.`);
  if (smoke) await runSmoke(settings.vars);
}

/** A certificate may take its time. */
const FIRST_ANSWER_S = 300;

/** In a process of its own, which clears up after itself at Ctrl-C. */
async function runSmoke({ PUBLIC_URL = "", MQTT_URL = "" }: Record<string, string>): Promise<void> {
  print(`Waiting for ${PUBLIC_URL} …`);
  await eventually(`An answer of ${PUBLIC_URL}`, FIRST_ANSWER_S, async () => {
    const response = await fetch(`${PUBLIC_URL}/healthz`, { signal: AbortSignal.timeout(5_000) }).catch(
      () => undefined,
    );
    return response?.ok || undefined;
  });
  process.on("SIGINT", () => {});
  const args = [join(ROOT, "scripts/smoke.ts"), "--url", PUBLIC_URL, "--mqtt", MQTT_URL];
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  process.exitCode = await new Promise<number>((resolve) => child.once("close", (code) => resolve(code ?? 1)));
}

await runCommand(main);
