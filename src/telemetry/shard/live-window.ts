import type { Sample } from "../samples.ts";
import { MetricSeries } from "./metric-series.ts";

/**
 * The last minutes of those agents that somebody watches, in memory. An agent is remembered from the moment it is first asked for;
 * what came before is filled in from the store. Bounded: when there is too much, whoever was not asked for the longest time goes.
 */
export interface LiveWindowOptions {
  spanMs: number;
  maxBytes: number;
  now: () => number;
}

/** An agent's name and its empty map, about. */
const AGENT_BYTES = 256;

export class LiveWindow {
  readonly #options: LiveWindowOptions;
  /** In the order in which they were last asked for. */
  readonly #watched = new Map<string, Map<string, MetricSeries>>();
  #bytes = 0;

  constructor(options: LiveWindowOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  has(apId: string): boolean {
    return this.#watched.has(apId);
  }

  /** Remembers what comes from now on. To be called before the store is asked for what came before. */
  watch(apId: string): void {
    this.#watched.set(apId, new Map());
    this.#makeRoom();
  }

  forget(apId: string): void {
    for (const track of this.#watched.get(apId)?.values() ?? []) this.#bytes -= track.bytes;
    this.#watched.delete(apId);
  }

  /** A sample that has been committed. */
  add(apId: string, { tsMs, metrics }: Sample): void {
    const tracks = this.#watched.get(apId);
    if (tracks === undefined || tsMs < this.#startMs) return;
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

  /**
   * The points of an agent that is watched, one text of JSON for each metric; nothing where it is not (any more), or where one of
   * them has more than `maxPoints`.
   */
  read(
    apId: string,
    metrics: readonly string[],
    range: { fromMs: number; toMs: number },
    maxPoints: number,
  ): string[] | undefined {
    const tracks = this.#watched.get(apId);
    if (tracks === undefined) return undefined;
    this.#watched.delete(apId);
    this.#watched.set(apId, tracks);
    this.#dropEnded(tracks);
    const texts: string[] = [];
    for (const metric of metrics) {
      const track = tracks.get(metric);
      const text = track === undefined ? "[]" : this.#on(track, () => track.toJson(range, maxPoints));
      if (text === undefined) return undefined;
      texts.push(text);
    }
    this.#makeRoom();
    return texts;
  }

  get #startMs(): number {
    return this.#options.now() - this.#options.spanMs;
  }

  #put(tracks: Map<string, MetricSeries>, metric: string, tsMs: number, value: number): void {
    let track = tracks.get(metric);
    if (track === undefined) {
      track = new MetricSeries();
      tracks.set(metric, track);
      this.#bytes += track.bytes;
    }
    const its = track;
    this.#on(its, () => its.put(tsMs, value));
  }

  /** Names may be of clients, which come and go: what has got nothing for so long that nothing is left of it goes. */
  #dropEnded(tracks: Map<string, MetricSeries>): void {
    for (const [metric, track] of tracks) {
      this.#on(track, () => {});
      if (!track.isEmpty) continue;
      tracks.delete(metric);
      this.#bytes -= track.bytes;
    }
  }

  /** Whatever is done with a track, what is too old goes first, and its bytes are counted anew. */
  #on<T>(track: MetricSeries, work: () => T): T {
    const before = track.bytes;
    track.dropBefore(this.#startMs);
    const result = work();
    this.#bytes += track.bytes - before;
    return result;
  }

  #makeRoom(): void {
    for (const apId of this.#watched.keys()) {
      if (this.#bytes + this.#watched.size * AGENT_BYTES <= this.#options.maxBytes) return;
      this.forget(apId);
    }
  }
}
