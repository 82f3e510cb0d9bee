import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { print, UserError } from "../../../src/programs/shared/cli.ts";
import { writeFileAtomically } from "../../../src/programs/shared/system.ts";

/** The manifest describes a backup. It is written last, so a folder without it is not a complete backup. */

/** SQL statements and paths contain these names, so a manipulated manifest must not inject anything. */
const Name = z.string().regex(/^\w+$/, { error: "is not a plain name" });
const Path = z.string().regex(/^(?:\w+\/)?\w+(?:\.\w+)+$/, { error: "is not a path within the backup" });

const BackupFile = z.object({ file: Path, bytes: z.int(), sha256: z.string() });
export type BackupFile = z.output<typeof BackupFile>;

const TableFile = BackupFile.extend({ table: Name, columns: z.array(Name), rows: z.int() });
export type TableFile = z.output<typeof TableFile>;

const Manifest = z.object({
  /** Version of the format. Increase it when earlier versions of the restore cannot read the backup. */
  format: z.literal(1, { error: "is a later version: use a later version of the product" }),
  version: z.string(),
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime(),
  accounts: z.object({
    /** Hashes of the applied migrations. */
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
    throw new UserError(`${folder} is not a backup: it has no readable ${NAME}.`);
  }
  const manifest = Manifest.safeParse(json);
  if (manifest.success) return manifest.data;
  const [issue] = manifest.error.issues;
  throw new UserError(`${NAME} is invalid: ${issue?.path.join(".")} ${issue?.message}.`);
}

export const filesOf = ({ accounts, telemetry, secrets }: Manifest): BackupFile[] => [
  ...accounts.tables,
  ...telemetry.tables,
  ...(secrets === undefined ? [] : [secrets]),
];

export const printTable = ({ table, rows, bytes }: TableFile): void =>
  print(`  ${table.padEnd(22)} ${String(rows).padStart(12)} rows  ${(bytes / 1024).toFixed(0).padStart(10)} KiB`);

/** The tables of this product that a store already has. */
export interface ExistingTables {
  tables: string[];
  isEmpty: boolean;
}
