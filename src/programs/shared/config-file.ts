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
 * Brings the settings of a file into the environment: one `NAME=value` a line, as in systemd's EnvironmentFile. What the environment
 * says already goes first. The file is the one that `--config` names, or else CONTROLLER_CONFIG.
 */
export function loadConfiguration(given: string | undefined, env: NodeJS.ProcessEnv = process.env): void {
  const file = given || env.CONTROLLER_CONFIG;
  if (!file) return;
  const settings = parseConfiguration(readConfiguration(file), file);
  for (const [name, value] of settings) env[name] ??= value;
  // The parts of the stack are handed what it says, so they need not read it, and complain, once more.
  delete env.CONTROLLER_CONFIG;
  // To a group one may have given it on purpose.
  const isOpen = (statSync(file).mode & 0o004) !== 0;
  if (isOpen && [...settings].some(([name, value]) => isSecret(name) && value !== "")) {
    print(red(`Warning: ${file} holds secrets, and everyone on this machine can read it (chmod o-r).`));
  }
}

function readConfiguration(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UserError(`The configuration file ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** The settings that a file holds. A line that is not clear is refused, and never quoted: it may hold a secret. */
export function parseConfiguration(text: string, file: string): Map<string, string> {
  const settings = new Map<string, string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const refuse = (why: string): never => {
      throw new UserError(`${file}, line ${index + 1}: ${why}`);
    };
    const [setting] = Object.entries(parseEnv(line));
    if (setting === undefined) return refuse("this is not NAME=value.");
    const [name, value = ""] = setting;
    if (!isSetting(name)) refuse(`there is no setting ${name}.`);
    if (settings.has(name)) refuse(`${name} was set before.`);
    // What is said after a # would be lost without a word, and systemd would take it for a part of the value.
    if (!/^[^=]*=\s*("[^"]*"|'[^']*'|[^"'`#]*)\s*$/.test(line)) {
      refuse(`the value of ${name} must be in quotes, alone on its line, if it holds quotes or a #.`);
    }
    settings.set(name, value);
  }
  return settings;
}
