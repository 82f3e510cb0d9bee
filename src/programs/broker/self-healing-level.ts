import { setTimeout as sleep } from "node:timers/promises";
import { ClassicLevel } from "classic-level";

/**
 * A LevelDB store that reopens itself after a failed write, such as on a full disk.
 *
 * After an incomplete record, LevelDB continues to write behind it. At the next start it skips the records behind the incomplete one in
 * the same block, although it had reported them as written. So after a failed write this store rejects all writes until the files were
 * reopened and a test write succeeded.
 */

export interface SelfHealingOptions {
  /** Called when a write fails. From now on the store rejects all writes. */
  onBroken(error: Error): void;
  /** Called when writes work again. */
  onHealed(): void;
}

type Write = (...args: unknown[]) => Promise<void>;

const RETRY_MS = 500;
const PROBE_KEY = "probe";

export async function openSelfHealingLevel(
  folder: string,
  { onBroken, onHealed }: SelfHealingOptions,
): Promise<ClassicLevel> {
  const level = new ClassicLevel(folder);
  let isBroken = false;

  const guard =
    (write: Write): Write =>
    async (...args) => {
      try {
        await write(...args);
      } catch (error) {
        if (!isBroken) void heal(error as Error);
        throw error;
      }
      // This write succeeded behind one that failed, so it may be lost.
      if (isBroken) throw new Error("the store is being reopened");
    };
  const put = level.put.bind(level) as Write;
  const batch = level.batch.bind(level) as (...args: unknown[]) => unknown;

  const heal = async (error: Error): Promise<void> => {
    isBroken = true;
    onBroken(error);
    for (let isHealed = false; !isHealed; ) {
      await level.close();
      isHealed = await reopen().then(
        () => true,
        () => false,
      );
      if (!isHealed) await sleep(RETRY_MS);
    }
    isBroken = false;
    onHealed();
  };
  const reopen = async (): Promise<void> => {
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
