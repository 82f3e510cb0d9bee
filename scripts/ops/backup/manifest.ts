import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { writeFileAtomically } from "../../../src/programs/shared/system.ts";

/** What a backup says of itself. It is written last: a folder without it is no backup. */

/** Names become parts of statements and of paths: they are plain ones, whoever wrote the file. */
const Name = z.string().regex(/^\w+$/, { error: "is no plain name" });
const Path = z.string().regex(/^(?:\w+\/)?\w+(?:\.\w+)+$/, { error: "is no path within the backup" });

const BackupFile = z.object({ file: Path, bytes: z.int(), sha256: z.string() });
export type BackupFile = z.output<typeof BackupFile>;

const TableFile = BackupFile.extend({ table: Name, columns: z.array(Name), rows: z.int() });
export type TableFile = z.output<typeof TableFile>;

const Manifest = z.object({
  /** Of the form of backups, to be raised when an older restore could not read one. */
  format: z.literal(1, { error: "is of a later form" }),
  version: z.string(),
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime(),
  accounts: z.object({
    /** Hashes of the migrations that had been applied. */
    migrations: z.array(z.string()),
    schema: z.array(z.object({ type: z.string(), name: z.string(), sql: z.string() })),
    tables: z.array(TableFile),
  }),
  telemetry: z.object({
    form: z.enum(["one server", "cluster"]),
    migrations: z.array(z.object({ name: z.string(), hash: z.string() })),
    tables: z.array(TableFile),
  }),
  secrets: BackupFile.optional(),
});
export type Manifest = z.output<typeof Manifest>;

const NAME = "manifest.json";

export function writeManifest(folder: string, manifest: Manifest): void {
  writeFileAtomically(join(folder, NAME), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

export function readManifest(folder: string): Manifest {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(join(folder, NAME), "utf8"));
  } catch {
    throw new UserError(`${folder} is no backup: it has no ${NAME} that can be read.`);
  }
  const manifest = Manifest.safeParse(json);
  if (manifest.success) return manifest.data;
  const [fault] = manifest.error.issues;
  throw new UserError(`${NAME} cannot be used: ${fault?.path.join(".")} ${fault?.message}.`);
}

export const filesOf = ({ accounts, telemetry, secrets }: Manifest): BackupFile[] => [
  ...accounts.tables,
  ...telemetry.tables,
  ...(secrets === undefined ? [] : [secrets]),
];
