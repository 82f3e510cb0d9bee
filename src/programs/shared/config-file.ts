import { readFileSync, statSync } from "node:fs";
import { parseEnv } from "node:util";
import { print, red, UserError } from "./cli.ts";
import { isSecret, isSetting } from "./settings.ts";

const CONFIG_DESCRIPTION = "Read settings from a file; environment variables take precedence. Also: CONTROLLER_CONFIG";

/** The option of every command that reads a configuration file. */
export const CONFIG_OPTION = {
  config: { type: "string", value: "file", description: CONFIG_DESCRIPTION },
} as const;

/** The same option, for commands that write their help by hand. */
export const CONFIG_HELP = `--config <file>   ${CONFIG_DESCRIPTION}`;

/**
 * Adds the settings of a file to the environment. Each line is `NAME=value`, as in systemd's EnvironmentFile. Variables that are already
 * set take precedence. The file is the one of `--config`, or else the one of CONTROLLER_CONFIG.
 */
export function loadConfiguration(given: string | undefined, env: NodeJS.ProcessEnv = process.env): void {
  const file = given || env.CONTROLLER_CONFIG;
  if (!file) return;
  const settings = parseConfiguration(readConfiguration(file), file);
  for (const [name, value] of settings) env[name] ??= value;
  // The components of the stack inherit the environment. They must not read the file, and report its errors, a second time.
  delete env.CONTROLLER_CONFIG;
  // Group access may be intended, so only access for everyone gets a warning.
  const isWorldReadable = (statSync(file).mode & 0o004) !== 0;
  if (isWorldReadable && [...settings].some(([name, value]) => isSecret(name) && value !== "")) {
    print(red(`Warning: ${file} contains secrets, and every user of this machine can read it. Run: chmod o-r ${file}`));
  }
}

function readConfiguration(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UserError(`Cannot read the configuration file ${file} (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Parses the text of a configuration file. Throws at the first invalid line, and never quotes it: it may contain a secret. */
export function parseConfiguration(text: string, file: string): Map<string, string> {
  const settings = new Map<string, string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const reject = (reason: string): never => {
      throw new UserError(`${file}, line ${index + 1}: ${reason}`);
    };
    const [setting] = Object.entries(parseEnv(line));
    if (setting === undefined) return reject("Expected NAME=value.");
    const [name, value = ""] = setting;
    if (!isSetting(name)) reject(`Unknown setting ${name}.`);
    if (settings.has(name)) reject(`${name} is set twice.`);
    // `parseEnv` silently drops text after a #, while systemd treats it as part of the value.
    if (!/^[^=]*=\s*("[^"]*"|'[^']*'|[^"'`#]*)\s*$/.test(line)) {
      reject(`Put the value of ${name} in quotes, with nothing after it, if it contains quotes or a #.`);
    }
    settings.set(name, value);
  }
  return settings;
}
