import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Client } from "@libsql/client/http";
import { createEncryptor } from "../../../src/auth/encryptor.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { requireOwnFolder, writeFileAtomically } from "../../../src/programs/shared/system.ts";
import { readSecrets } from "../../../src/programs/stack/stack-secrets.ts";
import type { BackupFile } from "./manifest.ts";

/** The secrets of a product on one machine, in a backup that is to hold them, too. */

const NAME = "secrets.json";

export function dumpSecrets(file: string, folder: string): BackupFile {
  if (!existsSync(file)) throw new UserError(`There is no ${file}. Set DATA_DIR, or leave --with-secrets out.`);
  const text = readFileSync(file, "utf8");
  writeFileAtomically(join(folder, NAME), text);
  const sha256 = createHash("sha256").update(text).digest("hex");
  return { file: NAME, bytes: Buffer.byteLength(text), sha256 };
}

/** Other secrets than these, where the restored ones would go. */
export function hasOtherSecrets(file: string, folder: string): boolean {
  return existsSync(file) && readFileSync(file, "utf8") !== readFileSync(join(folder, NAME), "utf8");
}

export function loadSecretsFile(file: string, folder: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  requireOwnFolder(dirname(file));
  writeFileAtomically(file, readFileSync(join(folder, NAME), "utf8"));
}

/** How many api keys there are, and how many of them the secrets at hand open; nothing where there are none at hand. */
export async function readableKeys(
  client: Client,
  file: string,
): Promise<{ all: number; readable: number } | undefined> {
  const key = process.env.ENCRYPTION_KEY || readSecrets(dirname(file))?.ENCRYPTION_KEY;
  if (key === undefined) return undefined;
  const encryptor = createEncryptor(key.split(","));
  const { rows } = await client.execute("SELECT id, sealed_api_key FROM apps");
  const opened = await Promise.allSettled(
    rows.map((row) => encryptor.open(String(row.sealed_api_key), String(row.id))),
  );
  return { all: rows.length, readable: opened.filter(({ status }) => status === "fulfilled").length };
}
