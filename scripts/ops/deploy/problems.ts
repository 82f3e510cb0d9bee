import { print, red } from "../../../src/programs/shared/cli.ts";

/** A reason not to deploy. */
export interface Problem {
  area: "settings" | "hosts" | "secrets" | "stores" | "broker" | "migrations" | "build";
  /** A sentence that says what is wrong and, if possible, what to do. */
  message: string;
}

/** Replaces every secret in a text, for messages of stores and wrangler that may quote one. */
export const redact = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((rest, secret) => rest.replaceAll(secret, "…"), text);

export function printProblems(notes: readonly string[], problems: readonly Problem[]): void {
  for (const note of notes) print(`! ${note}`);
  for (const { message } of problems) print(red(`✗ ${message}`));
}
