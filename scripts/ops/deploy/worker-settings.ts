import { readFileSync } from "node:fs";
import { parseEnv as parseEnvFile } from "node:util";
import { checkEnv, SETTINGS } from "../../../src/env.ts";
import { splitAddresses } from "../../../src/lib/addresses.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { isSecret } from "../../../src/programs/shared/settings.ts";

/** The Worker's settings as the operator gives them. */

/** A reason not to deploy. */
export interface Problem {
  area: "settings" | "hosts" | "secrets" | "stores" | "broker" | "migrations" | "build";
  /** A sentence that says what is wrong and, if possible, what to do. */
  message: string;
}

export const SECRET_SETTINGS = SETTINGS.filter(isSecret);

export interface DeploySettings {
  /** Visible to everyone who can see the Worker's configuration. */
  vars: Record<string, string>;
  secrets: Record<string, string>;
}

/** Reads the settings from a file with lines NAME=value. The environment takes precedence. */
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
    throw new UserError(`Cannot read ${file}: ${(error as Error).message}`);
  }
}

/** Replaces every secret in a text, for messages of stores and wrangler that may quote one. */
export const redact = (text: string, { secrets }: DeploySettings): string =>
  Object.values(secrets).reduce((rest, secret) => rest.replaceAll(secret, "…"), text);

/** Checks the settings. The Worker has the secrets in `workerSecrets`; their values cannot be read, so they count as valid. */
export function checkSettings({ vars, secrets }: DeploySettings, workerSecrets: readonly string[]): Problem[] {
  const problems = checkEnv({ ...vars, ...secrets });
  for (const name of workerSecrets) if (!(name in secrets)) problems.delete(name);
  for (const [name, value] of Object.entries(vars)) {
    if (urlsIn(value).some(({ password }) => password !== "")) problems.set(name, "must not contain a password");
  }
  if (vars.PUBLIC_URL === undefined) problems.set("PUBLIC_URL", "is missing: links in e-mails begin with it");
  for (const name of Object.keys(secrets)) {
    if (!workerSecrets.includes(name))
      problems.set(name, "is set here, but the Worker does not have it: pass --secrets");
  }
  return [...problems].map(([name, problem]) => ({ area: "settings", message: `${name} ${problem}.` }));
}

/** Returns the URLs of a setting, which may be a list. */
const urlsIn = (value = ""): URL[] => splitAddresses(value).flatMap((url) => URL.parse(url) ?? []);

const URL_SETTINGS = ["LIBSQL_URL", "LIBSQL_READ_URL", "CLICKHOUSE_URL", "MQTT_URL", "PUBLIC_URL"];
const PRIVATE_HOST = /^(?:localhost|.*\.(?:local|localhost|internal)|\[.*\]|[\d.]+)$/;

/** Checks that the settings name public hosts. A Worker cannot reach others. */
export const checkHosts = ({ vars }: DeploySettings): Problem[] =>
  URL_SETTINGS.filter((name) => urlsIn(vars[name]).some(({ hostname }) => PRIVATE_HOST.test(hostname))).map((name) => ({
    area: "hosts",
    message: `${name} must name a public host: Cloudflare cannot reach this one.`,
  }));
