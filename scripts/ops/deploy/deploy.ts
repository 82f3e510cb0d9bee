import { spawn } from "node:child_process";
import { join } from "node:path";
import { print, red, UserError } from "../../../src/programs/shared/cli.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { migrateTelemetry } from "../../../src/programs/telemetry-store/migrate.ts";
import { eventually } from "../../harness/smoke/steps.ts";
import { migrateStores } from "../migrate.ts";
import { checkDeployment, type DeployPlan } from "./checks.ts";
import { deployWorker, putSecrets } from "./cloudflare.ts";
import { loadKeys } from "./worker-secrets.ts";
import { readDeploySettings } from "./worker-settings.ts";

export interface DeployOptions extends DeployPlan {
  settingsFile: string | undefined;
  smoke: boolean;
}

/** Checks everything, prints all problems, and deploys only if there are none. */
export async function deploy({ settingsFile, smoke, ...plan }: DeployOptions): Promise<void> {
  const { secretsFolder, migrate, dryRun } = plan;
  if (smoke && !(process.env.SMOKE_USERNAME && process.env.SMOKE_PASSWORD))
    throw new UserError("--smoke needs SMOKE_USERNAME and SMOKE_PASSWORD of an administrator in the environment.");
  const settings = readDeploySettings(process.env, settingsFile);

  print("Checking settings, secrets, stores and the build …");
  const { notes, problems, stores, postponed, bundleBytes } = await checkDeployment(plan, settings);
  for (const note of notes) print(`! ${note}`);
  for (const { message } of problems) print(red(`✗ ${message}`));
  if (problems.length > 0 || stores === undefined) throw new UserError("Nothing was changed.");
  print(`✓ All checks passed. The Worker is ${Math.round(bundleBytes / 1024)} KiB gzip.`);

  if (dryRun) return print("Nothing was changed: this was a dry run.");
  if (secretsFolder !== undefined) {
    const secrets = { ...settings.secrets, ...(await loadKeys(secretsFolder)) };
    await putSecrets(plan, secrets);
    print(`✓ Stored the secrets: ${Object.keys(secrets).join(", ")}`);
  }
  if (migrate) {
    await migrateStores(stores, postponed);
    print("✓ Migrated the stores for the new Worker.");
  }
  await deployWorker(plan, settings.vars);
  if (migrate) await migrateTelemetry(stores);
  else if (postponed.length > 0)
    print(`When the new Worker runs, npm run migrate -- --after-deploy applies ${postponed.join(", ")}.`);
  if (smoke) await runSmokeTest(settings.vars);
}

/** A new certificate may take minutes. */
const FIRST_RESPONSE_S = 300;

/** Runs the smoke test as another process, which cleans up after itself on Ctrl-C. */
async function runSmokeTest({ PUBLIC_URL = "", MQTT_URL = "" }: Record<string, string>): Promise<void> {
  print(`Waiting for ${PUBLIC_URL} …`);
  await eventually(`A response of ${PUBLIC_URL}`, FIRST_RESPONSE_S, async () => {
    const response = await fetch(`${PUBLIC_URL}/healthz`, { signal: AbortSignal.timeout(5_000) }).catch(
      () => undefined,
    );
    return response?.ok || undefined;
  });
  // The smoke test gets the signal too. This process must outlive it.
  process.on("SIGINT", () => {});
  const args = [join(ROOT, "scripts/smoke.ts"), "--url", PUBLIC_URL, "--mqtt", MQTT_URL];
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  process.exitCode = await new Promise<number>((resolve) => child.once("close", (code) => resolve(code ?? 1)));
}
