import { readFileSync } from "node:fs";
import { parseEnv as parseEnvFile } from "node:util";
import { checkEnv, SETTINGS } from "../../../src/env.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { isSecret } from "../../../src/programs/shared/settings.ts";

/** The Worker's settings, as whoever deploys it knows them, and what is wrong with them. */

export const SECRET_SETTINGS = SETTINGS.filter(isSecret);

export interface DeploySettings {
  /** For everybody to see who may see the Worker's configuration. */
  vars: Record<string, string>;
  secrets: Record<string, string>;
}

/** From the environment and, where that does not say, from a file of lines NAME=value. */
export function readDeploySettings(env: NodeJS.ProcessEnv, file: string | undefined): DeploySettings {
  const given = { ...(file === undefined ? {} : readFile(file)), ...env };
  const known = SETTINGS.flatMap((name): [string, string][] => {
    const value = given[name];
    return value === undefined || value === "" ? [] : [[name, value]];
  });
  return {
    vars: Object.fromEntries(known.filter(([name]) => !isSecret(name))),
    secrets: Object.fromEntries(known.filter(([name]) => isSecret(name))),
  };
}

function readFile(file: string): NodeJS.Dict<string> {
  try {
    return parseEnvFile(readFileSync(file, "utf8"));
  } catch (error) {
    throw new UserError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** `inService` names the secrets that the Worker has; what they hold, nobody can read any more. */
export function faultsOfSettings({ vars, secrets }: DeploySettings, inService: readonly string[]): string[] {
  const faults = checkEnv({ ...vars, ...secrets });
  for (const name of inService) if (!(name in secrets)) faults.delete(name);
  for (const [name, value] of Object.entries(vars)) {
    if (URL.canParse(value) && new URL(value).password !== "") faults.set(name, "must not hold a password");
  }
  if (vars.PUBLIC_URL === undefined) faults.set("PUBLIC_URL", "is missing: links in messages begin with it");
  for (const name of Object.keys(secrets)) {
    if (!inService.includes(name)) faults.set(name, "is known here, and not among the Worker's secrets");
  }
  return [...faults].map(([name, fault]) => `${name} ${fault}.`);
}

const ADDRESSES = ["LIBSQL_URL", "CLICKHOUSE_URL", "MQTT_URL", "PUBLIC_URL"];
const UNREACHABLE = /^(?:localhost|.*\.(?:local|localhost|internal)|\[.*\]|[\d.]+)$/;

/** A Worker reaches hosts by their public names only. */
export const unreachableFrom = ({ vars }: DeploySettings): string[] =>
  ADDRESSES.filter(
    (name) => URL.canParse(vars[name] ?? "") && UNREACHABLE.test(new URL(vars[name] ?? "").hostname),
  ).map((name) => `${name} is no public name of a host: Cloudflare cannot reach it.`);
