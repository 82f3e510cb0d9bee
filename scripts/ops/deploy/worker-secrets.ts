import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { loadSecrets } from "../../../src/programs/stack/stack-secrets.ts";

/** The Worker's keys, kept in a folder of the operator's, as `npm start` keeps them in its data folder. */

export const KEYS = ["JWT_KEYS", "ENCRYPTION_KEY", "CREDENTIAL_PEPPER"] as const;

/** Made where there are none yet. */
export async function keysIn(folder: string): Promise<Record<(typeof KEYS)[number], string>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { JWT_KEYS, ENCRYPTION_KEY, CREDENTIAL_PEPPER } = await loadSecrets(folder);
  return { JWT_KEYS: JSON.stringify(JWT_KEYS), ENCRYPTION_KEY, CREDENTIAL_PEPPER };
}

const TIMEOUT_MS = 10_000;
const PublicKeys = z.object({ keys: z.array(z.object({ kid: z.string() })) });

/**
 * Whether a folder's keys may take the place of those in service. With others the service would no longer know what it has
 * encrypted; those that belong to it share a key with what it shows.
 */
export async function faultsOfKeys(folder: string, publicUrl: string): Promise<string[]> {
  const file = join(folder, "secrets.json");
  if (!existsSync(file)) return [`There is no ${file}, and the Worker has keys already: theirs is the file to find.`];
  const own = new Set((JSON.parse((await keysIn(folder)).JWT_KEYS) as { kid: string }[]).map(({ kid }) => kid));
  try {
    const response = await fetch(`${publicUrl}/.well-known/jwks.json`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const { keys } = PublicKeys.parse(await response.json());
    return keys.some(({ kid }) => own.has(kid)) ? [] : [`${file} holds the keys of another service than ${publicUrl}.`];
  } catch {
    return [`${publicUrl} does not show its keys, so whether those in ${file} are its own cannot be told.`];
  }
}
