import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { exportJWK, generateKeyPair } from "jose";
import * as z from "zod";
import { requireOwnFolder, writeFileAtomically } from "../shared/system.ts";

/** Keys and secrets of the stack. The first start generates them. Only the owner of the data folder can read them. */

const Secrets = z.object({
  JWT_KEYS: z.array(z.record(z.string(), z.unknown())),
  ENCRYPTION_KEY: z.string(),
  CREDENTIAL_PEPPER: z.string(),
  /** The API keys of the bridge and the emulator. The Worker does not get them. */
  BRIDGE_KEY: z.string(),
  EMULATOR_KEY: z.string(),
});
export type Secrets = z.output<typeof Secrets>;
const StoredSecrets = Secrets.partial();

const fileIn = (dataDir: string): string => join(dataDir, "secrets.json");

/** Reads the secrets of a data folder, and generates those that are missing. */
export async function loadSecrets(dataDir: string): Promise<Secrets> {
  const stored = readSecrets(dataDir);
  const complete = Secrets.safeParse(stored);
  // Earlier versions had fewer secrets.
  return complete.success
    ? complete.data
    : write(fileIn(dataDir), Secrets.parse({ ...(await generateSecrets()), ...stored }));
}

function write(file: string, secrets: Secrets): Secrets {
  requireOwnFolder(dirname(file));
  writeFileAtomically(file, JSON.stringify(secrets, undefined, 2));
  return secrets;
}

async function newSigningKey() {
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  const kid = randomBytes(8).toString("hex");
  return { ...(await exportJWK(privateKey)), kid, created: new Date().toISOString() };
}

/** Returns the secrets of a data folder, or undefined if it has none. */
export function readSecrets(dataDir: string): z.output<typeof StoredSecrets> | undefined {
  try {
    return StoredSecrets.parse(JSON.parse(readFileSync(fileIn(dataDir), "utf8")));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

/** Secrets that can be rotated. During a rotation there are two values, separated by a comma; the first one is in use. */
export type RenewedSecret = "ENCRYPTION_KEY" | "CREDENTIAL_PEPPER";

/** Puts a new value in front of the present one. The caller must drop a former value first: there are never more than two. */
export async function renewSecret(dataDir: string, name: RenewedSecret): Promise<void> {
  const secrets = await loadSecrets(dataDir);
  write(fileIn(dataDir), { ...secrets, [name]: `${randomBytes(32).toString("base64")},${secrets[name]}` });
}

export async function dropFormerSecret(dataDir: string, name: RenewedSecret): Promise<void> {
  const secrets = await loadSecrets(dataDir);
  write(fileIn(dataDir), { ...secrets, [name]: secrets[name].split(",")[0] ?? "" });
}

/**
 * Performs the next of the two steps of a key rotation. The first step publishes a new key behind the signing key, so that all verifiers
 * learn it. The second step swaps the two. If the newest key is behind the signing key, the second step is next.
 */
export async function rotateKeys(dataDir: string): Promise<{ step: "published" | "signs"; key: string }> {
  const secrets = await loadSecrets(dataDir);
  const [present, other] = secrets.JWT_KEYS;
  const isPublished = other !== undefined && String(other.created) > String(present?.created);
  const fresh = isPublished ? other : await newSigningKey();
  const keys = [present, fresh].filter((key) => key !== undefined);
  write(fileIn(dataDir), { ...secrets, JWT_KEYS: isPublished ? keys.reverse() : keys });
  return { step: isPublished ? "signs" : "published", key: String(fresh.kid) };
}

export async function generateSecrets(): Promise<Secrets> {
  return {
    JWT_KEYS: [await newSigningKey()],
    ENCRYPTION_KEY: randomBytes(32).toString("base64"),
    CREDENTIAL_PEPPER: randomBytes(32).toString("base64"),
    BRIDGE_KEY: randomBytes(32).toString("base64url"),
    EMULATOR_KEY: randomBytes(32).toString("base64url"),
  };
}
