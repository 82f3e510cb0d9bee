const LANES = 16;

/** Does something with each, a few at a time. */
export async function inLanes<T>(items: readonly T[], work: (item: T) => Promise<void>, lanes = LANES): Promise<void> {
  // All lanes take from one queue.
  const queue = items.values();
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const item of queue) await work(item);
    }),
  );
}
