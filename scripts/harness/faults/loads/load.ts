/** Something that is done to the service all the while, and that notes what it was told has been done. */
export interface Load {
  readonly name: string;
  /** How many operations have been acknowledged so far. */
  readonly acknowledged: number;
  /** Begins nothing more. Comes back when it is known what became of what was begun. */
  stop(): Promise<void>;
  /** After the stop: waits for what may come late, and compares what was acknowledged with what is there. */
  settle(): Promise<Verdict>;
}

export interface Verdict {
  /** Acknowledged, and not there, or not as it was acknowledged. */
  lost: number;
  /** There more than once. */
  doubled: number;
  /** What is wrong besides, by name; nothing where nothing is. */
  faults: Record<string, number>;
  /** How long after the stop everything was there. */
  settledMs: number;
}
