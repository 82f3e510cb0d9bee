import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { exportJWK, generateKeyPair } from "jose";
import * as z from "zod";
import { requireOwnFolder, writeFileAtomically } from "../shared/system.ts";

/** Keys and secrets of the local stack: made at the first start, kept in the data folder, read by nobody else. */

const Secrets = z.object({
  JWT_KEYS: z.array(z.record(z.string(), z.unknown())),
  ENCRYPTION_KEY: z.string(),
  CREDENTIAL_PEPPER: z.string(),
  /** The api keys of the bridge and the emulator; the Worker is not told. */
  BRIDGE_KEY: z.string(),
  EMULATOR_KEY: z.string(),
});
export type Secrets = z.output<typeof Secrets>;
const SomeSecrets = Secrets.partial();

const fileIn = (dataDir: string): string => join(dataDir, "secrets.json");

export async function loadSecrets(dataDir: string): Promise<Secrets> {
  const known = readSecrets(dataDir);
  const complete = Secrets.safeParse(known);
  // Those of an earlier version were fewer.
  return complete.success
    ? complete.data
    : write(fileIn(dataDir), Secrets.parse({ ...(await generateSecrets()), ...known }));
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

/** The secrets of a data folder, where it has any. */
export function readSecrets(dataDir: string): z.output<typeof SomeSecrets> | undefined {
  try {
    return SomeSecrets.parse(JSON.parse(readFileSync(fileIn(dataDir), "utf8")));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

/** Secrets of which there are two, with a comma between them, while one is changed: the first is in use. */
export type RenewedSecret = "ENCRYPTION_KEY" | "CREDENTIAL_PEPPER";

/** Puts a new one in front. There are never more than two: whoever has two drops the former one first. */
export async function renewSecret(dataDir: string, name: RenewedSecret): Promise<void> {
  const secrets = await loadSecrets(dataDir);
  write(fileIn(dataDir), { ...secrets, [name]: `${randomBytes(32).toString("base64")},${secrets[name]}` });
}

export async function dropFormerSecret(dataDir: string, name: RenewedSecret): Promise<void> {
  const secrets = await loadSecrets(dataDir);
  write(fileIn(dataDir), { ...secrets, [name]: secrets[name].split(",")[0] ?? "" });
}

/**
 * One of the two steps of a rotation: a new key is published behind the one that signs, so that everyone who checks tokens gets to
 * know it; then the two change places. Which step is due, the keys tell: the newest is behind, or in front.
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
