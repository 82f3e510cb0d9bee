import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { loadSecrets } from "../../../src/programs/stack/stack-secrets.ts";
import type { Problem } from "./worker-settings.ts";

/** The Worker's keys, in a folder of the operator. The file is the same as in the data folder of `npm start`. */

export const KEYS = ["JWT_KEYS", "ENCRYPTION_KEY", "CREDENTIAL_PEPPER"] as const;

/** Returns the keys of a folder, and generates them if there are none. */
export async function loadKeys(folder: string): Promise<Record<(typeof KEYS)[number], string>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { JWT_KEYS, ENCRYPTION_KEY, CREDENTIAL_PEPPER } = await loadSecrets(folder);
  return { JWT_KEYS: JSON.stringify(JWT_KEYS), ENCRYPTION_KEY, CREDENTIAL_PEPPER };
}

const TIMEOUT_MS = 10_000;
const PublicKeys = z.object({ keys: z.array(z.object({ kid: z.string() })) });

/**
 * Checks whether the keys of a folder may replace those of the running service. With the keys of another service, the Worker could no
 * longer decrypt its data. Keys of the same service have a signing key in common with those that it publishes.
 */
export async function checkKeys(folder: string, publicUrl: string): Promise<Problem[]> {
  const file = join(folder, "secrets.json");
  const problem = (message: string): Problem[] => [{ area: "secrets", message }];
  if (!existsSync(file)) return problem(`The Worker already has keys, but ${file} does not exist. Find their file.`);
  const own = new Set((JSON.parse((await loadKeys(folder)).JWT_KEYS) as { kid: string }[]).map(({ kid }) => kid));
  try {
    const response = await fetch(`${publicUrl}/.well-known/jwks.json`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const { keys } = PublicKeys.parse(await response.json());
    if (keys.some(({ kid }) => own.has(kid))) return [];
    return problem(`${file} contains the keys of another service than ${publicUrl}.`);
  } catch {
    return problem(
      `Cannot verify that the keys in ${file} belong to ${publicUrl}: it does not return its public keys.`,
    );
  }
}
