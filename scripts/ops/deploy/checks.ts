import { BadConfiguration, parseStoresEnv, type StoresConfig } from "../../../src/env.ts";
import { type Pending, pendingAccounts, pendingTelemetry } from "../../../src/programs/stack/pending-migrations.ts";
import { tryBuild } from "./build.ts";
import { faultsOfStores } from "./check-stores.ts";
import { listSecrets, type Target } from "./cloudflare.ts";
import { faultsOfKeys, KEYS } from "./worker-secrets.ts";
import { type DeploySettings, faultsOfSettings, SECRET_SETTINGS, unreachableFrom } from "./worker-settings.ts";

/** Everything that is looked at before anything is changed. */

export interface Wish extends Target {
  /** The folder whose keys are to be put in service. */
  secretsFolder: string | undefined;
  migrate: boolean;
  dryRun: boolean;
}

export interface Checked {
  /** Why nothing may be deployed. */
  faults: string[];
  notes: string[];
  stores: StoresConfig | undefined;
  /** Migrations whose time is after the deployment. */
  later: string[];
  bundleBytes: number;
}

export async function check(wish: Wish, settings: DeploySettings): Promise<Checked> {
  const checked: Checked = { faults: [], notes: [], stores: undefined, later: [], bundleBytes: 0 };
  // In a dry run, what Cloudflare alone makes impossible is worth a word and no more.
  const onlyThere = wish.dryRun ? checked.notes : checked.faults;
  onlyThere.push(...unreachableFrom(settings));
  await Promise.all([
    checkSecrets(wish, settings, checked, onlyThere),
    checkStores(wish, settings, checked),
    tryBuild().then(({ faults, bytes }) => {
      checked.faults.push(...faults);
      checked.bundleBytes = bytes;
    }),
  ]);
  const secrets = Object.values(settings.secrets);
  const redact = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "…"), text);
  return { ...checked, faults: checked.faults.map(redact), notes: checked.notes.map(redact) };
}

async function checkSecrets(wish: Wish, settings: DeploySettings, { faults }: Checked, onlyThere: string[]) {
  const inService = await listSecrets(wish).catch((error: Error) => {
    onlyThere.push(error.message);
    return undefined;
  });
  const { secretsFolder } = wish;
  const toBePut = secretsFolder === undefined ? [] : [...KEYS, ...Object.keys(settings.secrets)];
  // Where they cannot be listed, none is called missing.
  faults.push(...faultsOfSettings(settings, [...(inService ?? SECRET_SETTINGS), ...toBePut]));
  if (secretsFolder !== undefined && inService?.includes("ENCRYPTION_KEY"))
    faults.push(...(await faultsOfKeys(secretsFolder, settings.vars.PUBLIC_URL ?? "")));
}

async function checkStores(wish: Wish, { vars, secrets }: DeploySettings, checked: Checked): Promise<void> {
  try {
    checked.stores = parseStoresEnv({ ...vars, ...secrets });
  } catch (error) {
    // Which of the settings is wrong is said with all others.
    if (error instanceof BadConfiguration) return;
    throw error;
  }
  const faults = await faultsOfStores(checked.stores, vars.MQTT_URL);
  checked.faults.push(...faults.broker);
  checked.faults.push(...faults.stores);
  if (faults.stores.length > 0) return;
  try {
    await checkMigrations(wish, checked.stores, checked);
  } catch (error) {
    checked.faults.push(`Which migrations are missing cannot be told: ${(error as Error).message}`);
  }
}

async function checkMigrations({ migrate }: Wish, stores: StoresConfig, checked: Checked): Promise<void> {
  const [accounts, telemetry] = await Promise.all([pendingAccounts(stores), pendingTelemetry(stores)]);
  const names = (pending: Pending[]) => pending.map(({ name }) => name).join(", ");
  const takingAway = accounts.filter(({ isDestructive }) => isDestructive);
  if (takingAway.length > 0)
    checked.faults.push(`${names(takingAway)} must be applied by hand, when no Worker needs what it takes away.`);
  const first = [...accounts, ...telemetry].filter(({ isDestructive }) => !isDestructive);
  if (first.length > 0 && migrate) checked.notes.push(`To be applied before the deployment: ${names(first)}.`);
  else if (first.length > 0) checked.faults.push(`Migrations are missing: ${names(first)}. Try --migrate.`);
  checked.later = telemetry.filter(({ isDestructive }) => isDestructive).map(({ name }) => name);
  if (checked.later.length > 0) checked.notes.push(`To be applied after the deployment: ${checked.later.join(", ")}.`);
}
