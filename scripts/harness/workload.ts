/** Work that runs continuously and records what the service acknowledged. */
export interface Workload<V extends Verdict = Verdict> {
  readonly name: string;
  /** Operations acknowledged so far. */
  readonly acknowledged: number;
  /** Starts nothing more. Resolves when the outcome of everything that was started is known. */
  stop(): Promise<void>;
  /** After `stop`: waits for late results, and compares what was acknowledged with what is stored. */
  settle(): Promise<V>;
}

export interface Verdict {
  /** Acknowledged, but missing or different. */
  lost: number;
  /** Present more than once. */
  duplicates: number;
  /** Other violations, by name. */
  violations: Record<string, number>;
  /** How long after the stop everything was there. */
  settledMs: number;
}

/** Returns a workload that ends by an abort of `stop`. */
export const createWorkload = <V extends Verdict>(
  name: string,
  stop: AbortController,
  running: readonly Promise<unknown>[],
  { acknowledged, settle }: { acknowledged(): number; settle(): Promise<V> },
): Workload<V> => ({
  name,
  get acknowledged() {
    return acknowledged();
  },
  async stop() {
    stop.abort();
    await Promise.all(running);
  },
  settle,
});

/** Returns a text for each violation, such as "callbacks: 3 lost". */
export const problemsOf = (name: string, { lost, duplicates, violations }: Omit<Verdict, "settledMs">): string[] =>
  Object.entries({ lost, duplicates, ...violations }).flatMap(([what, n]) => (n > 0 ? [`${name}: ${n} ${what}`] : []));
