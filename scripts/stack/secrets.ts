import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportJWK, generateKeyPair } from "jose";
import * as z from "zod";

/** Keys and secrets of the local stack: made at the first start, kept in the data folder, read by nobody else. */

const Secrets = z.object({
  JWT_KEYS: z.array(z.record(z.string(), z.unknown())),
  ENCRYPTION_KEY: z.string(),
  CREDENTIAL_PEPPER: z.string(),
});
export type Secrets = z.output<typeof Secrets>;

const fileIn = (dataDir: string): string => join(dataDir, "secrets.json");

export async function loadSecrets(dataDir: string): Promise<Secrets> {
  const file = fileIn(dataDir);
  try {
    return Secrets.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const secrets = await generateSecrets();
  writePrivately(file, JSON.stringify(secrets, undefined, 2));
  return secrets;
}

async function newSigningKey() {
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: randomBytes(8).toString("hex") };
}

/** Puts a new signing key first and keeps the one that signed so far, whose tokens may still run. */
export async function rotateKeys(dataDir: string): Promise<{ signs: string; verifies: string }> {
  const secrets = await loadSecrets(dataDir);
  const fresh = await newSigningKey();
  const [former] = secrets.JWT_KEYS;
  const rotated = { ...secrets, JWT_KEYS: [fresh, ...(former === undefined ? [] : [former])] };
  writePrivately(fileIn(dataDir), JSON.stringify(rotated, undefined, 2));
  return { signs: fresh.kid, verifies: String(former?.kid) };
}

export async function generateSecrets(): Promise<Secrets> {
  return {
    JWT_KEYS: [await newSigningKey()],
    ENCRYPTION_KEY: randomBytes(32).toString("base64"),
    CREDENTIAL_PEPPER: randomBytes(32).toString("base64"),
  };
}

export function writePrivately(file: string, text: string): void {
  // By way of another file: a crash in between leaves the old one whole.
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, file);
}
