import { BadConfiguration, parseStoresEnv, type StoresConfig } from "../../../src/env.ts";
import { type Pending, pendingAccounts, pendingTelemetry } from "../../../src/programs/stack/pending-migrations.ts";
import { checkBuild } from "./build.ts";
import { checkStores } from "./check-stores.ts";
import { listSecrets, type Target } from "./cloudflare.ts";
import { checkKeys, KEYS } from "./worker-secrets.ts";
import {
  checkHosts,
  checkSettings,
  type DeploySettings,
  type Problem,
  redact,
  SECRET_SETTINGS,
} from "./worker-settings.ts";

/** All checks before a deployment. They change nothing. */

export interface DeployPlan extends Target {
  /** The folder with the keys that the Worker gets. */
  secretsFolder: string | undefined;
  migrate: boolean;
  dryRun: boolean;
}

export interface CheckResult {
  problems: Problem[];
  notes: string[];
  stores: StoresConfig | undefined;
  /** Migrations to apply after the deployment. */
  postponed: string[];
  bundleBytes: number;
}

export async function checkDeployment(plan: DeployPlan, settings: DeploySettings): Promise<CheckResult> {
  const result: CheckResult = { problems: [], notes: [], stores: undefined, postponed: [], bundleBytes: 0 };
  // A dry run also works without access to Cloudflare, so it reports problems with Cloudflare as notes.
  const addCloudflareProblems = (problems: Problem[]): void => {
    if (plan.dryRun) result.notes.push(...problems.map(({ message }) => message));
    else result.problems.push(...problems);
  };
  addCloudflareProblems(checkHosts(settings));
  await Promise.all([
    checkSecrets(plan, settings, result, addCloudflareProblems),
    checkStoresAndMigrations(plan, settings, result),
    checkBuild().then(({ problems, bytes }) => {
      result.problems.push(...problems);
      result.bundleBytes = bytes;
    }),
  ]);
  return {
    ...result,
    problems: result.problems.map(({ area, message }) => ({ area, message: redact(message, settings) })),
    notes: result.notes.map((note) => redact(note, settings)),
  };
}

async function checkSecrets(
  plan: DeployPlan,
  settings: DeploySettings,
  { problems }: CheckResult,
  addCloudflareProblems: (problems: Problem[]) => void,
): Promise<void> {
  const present = await listSecrets(plan).catch(({ message }: Error) => {
    addCloudflareProblems([{ area: "secrets", message }]);
    return undefined;
  });
  const { secretsFolder } = plan;
  const added = secretsFolder === undefined ? [] : [...KEYS, ...Object.keys(settings.secrets)];
  // If the Worker's secrets cannot be listed, assume that it has all of them.
  problems.push(...checkSettings(settings, [...(present ?? SECRET_SETTINGS), ...added]));
  if (secretsFolder !== undefined && present?.includes("ENCRYPTION_KEY"))
    problems.push(...(await checkKeys(secretsFolder, settings.vars.PUBLIC_URL ?? "")));
}

async function checkStoresAndMigrations(
  plan: DeployPlan,
  { vars, secrets }: DeploySettings,
  result: CheckResult,
): Promise<void> {
  try {
    result.stores = parseStoresEnv({ ...vars, ...secrets });
  } catch (error) {
    // `checkSettings` reports invalid settings.
    if (error instanceof BadConfiguration) return;
    throw error;
  }
  const problems = await checkStores(result.stores, vars.MQTT_URL);
  result.problems.push(...problems);
  if (problems.some(({ area }) => area === "stores")) return;
  try {
    await checkMigrations(plan, result.stores, result);
  } catch (error) {
    const message = `Cannot determine which migrations are missing: ${(error as Error).message}`;
    result.problems.push({ area: "migrations", message });
  }
}

async function checkMigrations({ migrate }: DeployPlan, stores: StoresConfig, result: CheckResult): Promise<void> {
  const [accounts, telemetry] = await Promise.all([pendingAccounts(stores), pendingTelemetry(stores)]);
  const isDestructive = (pending: Pending): boolean => pending.isDestructive;
  const names = (pending: Pending[]): string => pending.map(({ name }) => name).join(", ");
  const addProblem = (message: string) => result.problems.push({ area: "migrations", message });

  const destructive = accounts.filter(isDestructive);
  if (destructive.length > 0)
    addProblem(`Apply ${names(destructive)} by hand, when no Worker uses the tables and columns that it removes.`);
  const additive = [...accounts, ...telemetry].filter((pending) => !isDestructive(pending));
  if (additive.length > 0 && migrate)
    result.notes.push(`Migrations that run before the deployment: ${names(additive)}.`);
  else if (additive.length > 0) addProblem(`Migrations are missing: ${names(additive)}. Apply them with --migrate.`);
  result.postponed = telemetry.filter(isDestructive).map(({ name }) => name);
  if (result.postponed.length > 0)
    result.notes.push(`Migrations to apply after the deployment: ${result.postponed.join(", ")}.`);
}
