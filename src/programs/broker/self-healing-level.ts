import { setTimeout as sleep } from "node:timers/promises";
import { ClassicLevel } from "classic-level";

/**
 * LevelDB that opens itself anew after a write that failed, as on a full disk.
 *
 * LevelDB goes on behind a record that it could write only in part; when it is opened the next time, it passes over what stands behind
 * that one in the same block, although it had said that it was written. So from a failed write on nothing is taken any more, until the
 * files have been opened anew and a write has succeeded.
 */

export interface MendingOptions {
  /** A write failed: nothing is taken from now on. */
  onBroken(error: Error): void;
  onMended(): void;
}

type Write = (...args: unknown[]) => Promise<void>;

const TRY_EVERY_MS = 500;
const PROBE_KEY = "probe";

export async function openSelfHealingLevel(
  folder: string,
  { onBroken, onMended }: MendingOptions,
): Promise<ClassicLevel> {
  const level = new ClassicLevel(folder);
  let isBroken = false;

  const guard =
    (write: Write): Write =>
    async (...args) => {
      try {
        await write(...args);
      } catch (error) {
        if (!isBroken) void mend(error as Error);
        throw error;
      }
      // It stands behind one that failed.
      if (isBroken) throw new Error("The store is being mended");
    };
  const put = level.put.bind(level) as Write;
  const batch = level.batch.bind(level) as (...args: unknown[]) => unknown;

  const mend = async (error: Error): Promise<void> => {
    isBroken = true;
    onBroken(error);
    for (let isMended = false; !isMended; ) {
      await level.close();
      isMended = await open().then(
        () => true,
        () => false,
      );
      if (!isMended) await sleep(TRY_EVERY_MS);
    }
    isBroken = false;
    onMended();
  };
  const open = async (): Promise<void> => {
    await level.open();
    await put(PROBE_KEY, "");
  };

  Object.assign(level, {
    put: guard(put),
    del: guard(level.del.bind(level) as Write),
    clear: guard(level.clear.bind(level) as Write),
    batch: (...args: unknown[]) => {
      if (args.length > 0) return guard(batch as Write)(...args);
      const chained = batch() as { write: Write };
      return Object.assign(chained, { write: guard(chained.write.bind(chained)) });
    },
  });
  await level.open();
  return level;
}
