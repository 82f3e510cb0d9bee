import { toIsoTime } from "../../lib/iso-time.ts";

/**
 * Holds the points of one metric, ascending in time. Most points are added at the end and dropped at the start. The JSON of the points is
 * cached: for a chart that polls every second, only the newest point must be formatted.
 */
export class MetricSeries {
  #ts = new Float64Array(FIRST_CAPACITY);
  #values = new Float64Array(FIRST_CAPACITY);
  #start = 0;
  #end = 0;
  /** Array index + offset = the point's number, which does not change when other points are dropped. */
  #offset = 0;
  #cache = new JsonCache(0);

  /** Includes unused capacity: an agent with many metrics has few points in most of them. */
  get bytes(): number {
    return EMPTY_SERIES_BYTES + this.#ts.length * BYTES_PER_POINT + this.#cache.bytes;
  }

  get isEmpty(): boolean {
    return this.#end === this.#start;
  }

  /** Adds a point. If there is one at this time, keeps its value or replaces it. */
  put(tsMs: number, value: number, existing: "keep" | "replace" = "keep"): void {
    const at = this.#end > this.#start && tsMs <= (this.#ts[this.#end - 1] ?? 0) ? this.#indexOf(tsMs) : this.#end;
    if (at < this.#end && this.#ts[at] === tsMs) {
      if (existing === "keep" || this.#values[at] === value) return;
      this.#values[at] = value;
      this.#cache = new JsonCache(0);
      return;
    }
    // The cache lacks this point, and the numbers of the points after it change.
    if (at < this.#end) this.#cache = new JsonCache(0);
    const index = this.#end === this.#ts.length ? this.#grow(at) : at;
    this.#ts.copyWithin(index + 1, index, this.#end);
    this.#values.copyWithin(index + 1, index, this.#end);
    this.#ts[index] = tsMs;
    this.#values[index] = value;
    this.#end++;
  }

  dropBefore(tsMs: number): void {
    if (this.#end > this.#start && (this.#ts[this.#start] ?? 0) < tsMs) this.#start = this.#indexOf(tsMs);
  }

  /** Returns the points in the range as a JSON array, or `undefined` if there are more than `maxPoints`. */
  toJson({ fromMs, toMs }: { fromMs: number; toMs: number }, maxPoints: number): string | undefined {
    const [from, to] = [this.#indexOf(fromMs), this.#indexOf(toMs + 1)];
    if (to - from > maxPoints) return undefined;
    // A read of the newest points alone must not discard the cache of the others.
    const cache = (to - from) * 2 < this.#cache.count ? new JsonCache(0) : this.#cache;
    return cache.toJson(from + this.#offset, to + this.#offset, (number) => {
      const index = number - this.#offset;
      return `{"ts":"${toIsoTime(this.#ts[index] ?? 0)}","value":${this.#values[index]}},`;
    });
  }

  /** Returns the first index whose time is not before `tsMs`. */
  #indexOf(tsMs: number): number {
    let [low, high] = [this.#start, this.#end];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ts[middle] ?? 0) < tsMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Makes room at the end: moves the points to the start, into larger arrays if needed. Returns the new value of `index`. */
  #grow(index: number): number {
    const length = this.#end - this.#start;
    const capacity = length * 2 > this.#ts.length ? this.#ts.length * 2 : this.#ts.length;
    const [ts, values] = [new Float64Array(capacity), new Float64Array(capacity)];
    ts.set(this.#ts.subarray(this.#start, this.#end));
    values.set(this.#values.subarray(this.#start, this.#end));
    const moved = index - this.#start;
    this.#offset += this.#start;
    [this.#ts, this.#values, this.#start, this.#end] = [ts, values, 0, length];
    return moved;
  }
}

const FIRST_CAPACITY = 64;
const BYTES_PER_POINT = 16;
/** Estimated size of an empty series: its objects, its name and its map entry. */
const EMPTY_SERIES_BYTES = 512;
/** Size of one element of `JsonCache.#lengths`. */
const BYTES_PER_LENGTH = 8;

/** Caches the JSON texts of consecutively numbered elements in one string, each with a comma at its end. */
class JsonCache {
  #first: number;
  #lengths: number[] = [];
  #text = "";

  constructor(first: number) {
    this.#first = first;
  }

  get count(): number {
    return this.#lengths.length;
  }

  get bytes(): number {
    return this.#text.length + this.#lengths.length * BYTES_PER_LENGTH;
  }

  /** Returns elements `from` to `to - 1` as a JSON array. Formats those that are not cached, and drops those before `from`. */
  toJson(from: number, to: number, format: (number: number) => string): string {
    const end = this.#first + this.#lengths.length;
    if (from < this.#first || from > end || to < end) [this.#first, this.#lengths, this.#text] = [from, [], ""];
    const dropped = this.#lengths.splice(0, from - this.#first);
    if (dropped.length > 0) this.#text = this.#text.slice(dropped.reduce((sum, length) => sum + length));
    this.#first = from;
    for (let number = from + this.#lengths.length; number < to; number++) {
      const text = format(number);
      this.#lengths.push(text.length);
      this.#text += text;
    }
    return `[${this.#text.slice(0, -1)}]`;
  }
}
