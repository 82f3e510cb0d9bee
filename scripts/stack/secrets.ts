import { randomBytes } from "node:crypto";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
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

export async function loadSecrets(dataDir: string): Promise<Secrets> {
  const file = join(dataDir, "secrets.json");
  try {
    return Secrets.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const secrets = await generateSecrets();
  writePrivately(file, JSON.stringify(secrets, undefined, 2));
  return secrets;
}

export async function generateSecrets(): Promise<Secrets> {
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: randomBytes(8).toString("hex") };
  return {
    JWT_KEYS: [key],
    ENCRYPTION_KEY: randomBytes(32).toString("base64"),
    CREDENTIAL_PEPPER: randomBytes(32).toString("base64"),
  };
}

export function writePrivately(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o600 });
  chmodSync(file, 0o600);
}
