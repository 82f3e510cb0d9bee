import { print, runCommand, toUserError, UserError } from "../../../src/programs/shared/cli.ts";

/** Runs `npm run backup` or `npm run restore`: Ctrl-C cuts it off in good order, and what a person can mend is told in a sentence. */
export async function runStoreCommand(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());
  await runCommand(async () => {
    try {
      await work(stop.signal);
    } catch (error) {
      throw stop.signal.aborted ? new UserError("Cut off.") : toUserError(error);
    }
  });
  // Streams that were cut off may still hold a connection.
  process.exit();
}

/** What was done with a table. */
export const sayTable = ({ table, rows, bytes }: { table: string; rows: number; bytes: number }): void =>
  print(`  ${table.padEnd(22)} ${String(rows).padStart(12)} rows  ${(bytes / 1024).toFixed(0).padStart(10)} KiB`);
