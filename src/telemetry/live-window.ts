import type { Sample } from "./samples.ts";

/**
 * The last minutes of those agents that somebody watches, in memory. An agent is remembered from the moment it is first asked for;
 * what came before is filled in from the store. Bounded: when there is too much, whoever was not asked for the longest time goes.
 */
export interface LiveWindowOptions {
  spanMs: number;
  maxPoints: number;
  now: () => number;
}

/** One metric's points, ascending in time. */
export interface Track {
  metric: string;
  tsMs: Float64Array;
  values: Float64Array;
}

export class LiveWindow {
  readonly #options: LiveWindowOptions;
  /** In the order in which they were last asked for. */
  readonly #watched = new Map<string, Map<string, Points>>();
  #points = 0;

  constructor(options: LiveWindowOptions) {
    this.#options = options;
  }

  get points(): number {
    return this.#points;
  }

  has(apId: string): boolean {
    return this.#watched.has(apId);
  }

  /** Remembers what comes from now on. To be called before the store is asked for what came before. */
  watch(apId: string): void {
    this.#watched.set(apId, new Map());
  }

  forget(apId: string): void {
    for (const track of this.#watched.get(apId)?.values() ?? []) this.#points -= track.length;
    this.#watched.delete(apId);
  }

  /** A sample that has been committed. */
  add(apId: string, { tsMs, metrics }: Sample): void {
    const tracks = this.#watched.get(apId);
    if (tracks === undefined || tsMs < this.#options.now() - this.#options.spanMs) return;
    for (const [metric, value] of Object.entries(metrics)) this.#put(tracks, metric, tsMs, value);
    this.#makeRoom();
  }

  /** What the store has of an agent that is watched; some of it may have come meanwhile. */
  fill(apId: string, points: Iterable<{ metric: string; tsMs: number; value: number }>): void {
    const tracks = this.#watched.get(apId);
    if (tracks === undefined) return;
    for (const { metric, tsMs, value } of points) this.#put(tracks, metric, tsMs, value);
    this.#makeRoom();
  }

  /** The points of an agent that is watched; nothing where it is not (any more). */
  read(apId: string, metrics: readonly string[], fromMs: number, toMs: number): Track[] | undefined {
    const tracks = this.#watched.get(apId);
    if (tracks === undefined) return undefined;
    this.#watched.delete(apId);
    this.#watched.set(apId, tracks);
    return metrics.flatMap((metric) => {
      const track = tracks.get(metric);
      if (track === undefined) return [];
      this.#points -= track.dropBefore(this.#options.now() - this.#options.spanMs);
      return [{ metric, ...track.between(fromMs, toMs) }];
    });
  }

  #put(tracks: Map<string, Points>, metric: string, tsMs: number, value: number): void {
    let track = tracks.get(metric);
    if (track === undefined) {
      track = new Points();
      tracks.set(metric, track);
    }
    const before = track.length;
    track.dropBefore(this.#options.now() - this.#options.spanMs);
    track.put(tsMs, value);
    this.#points += track.length - before;
  }

  #makeRoom(): void {
    for (const apId of this.#watched.keys()) {
      if (this.#points <= this.#options.maxPoints) return;
      this.forget(apId);
    }
  }
}

const FIRST_CAPACITY = 64;

/** Times and values side by side, ascending in time; mostly points come at the end and go at the start. */
class Points {
  #ts = new Float64Array(FIRST_CAPACITY);
  #values = new Float64Array(FIRST_CAPACITY);
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** A time that has a point already keeps it. */
  put(tsMs: number, value: number): void {
    const at = this.#end > this.#start && tsMs <= (this.#ts[this.#end - 1] ?? 0) ? this.#indexOf(tsMs) : this.#end;
    if (at < this.#end && this.#ts[at] === tsMs) return;
    const index = this.#end === this.#ts.length ? this.#grow(at) : at;
    this.#ts.copyWithin(index + 1, index, this.#end);
    this.#values.copyWithin(index + 1, index, this.#end);
    this.#ts[index] = tsMs;
    this.#values[index] = value;
    this.#end++;
  }

  /** How many went. */
  dropBefore(tsMs: number): number {
    if (this.length === 0 || (this.#ts[this.#start] ?? 0) >= tsMs) return 0;
    const start = this.#indexOf(tsMs);
    const dropped = start - this.#start;
    this.#start = start;
    return dropped;
  }

  between(fromMs: number, toMs: number): { tsMs: Float64Array; values: Float64Array } {
    const [from, to] = [this.#indexOf(fromMs), this.#indexOf(toMs + 1)];
    return { tsMs: this.#ts.slice(from, to), values: this.#values.slice(from, to) };
  }

  /** The first place whose time is not before `tsMs`. */
  #indexOf(tsMs: number): number {
    let [low, high] = [this.#start, this.#end];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ts[middle] ?? 0) < tsMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Makes room at the end, by moving up what is left or by taking more memory; where `index` is then. */
  #grow(index: number): number {
    const { length } = this;
    const capacity = length * 2 > this.#ts.length ? this.#ts.length * 2 : this.#ts.length;
    const [ts, values] = [new Float64Array(capacity), new Float64Array(capacity)];
    ts.set(this.#ts.subarray(this.#start, this.#end));
    values.set(this.#values.subarray(this.#start, this.#end));
    const moved = index - this.#start;
    [this.#ts, this.#values, this.#start, this.#end] = [ts, values, 0, length];
    return moved;
  }
}
