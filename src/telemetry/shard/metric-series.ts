import { toIsoTime } from "../../lib/iso-time.ts";

/**
 * One metric's points, ascending in time; mostly they come at the end and go at the start. Their JSON is kept from one reading to
 * the next: a chart that asks every second finds all but the newest point written already.
 */
export class MetricSeries {
  #ts = new Float64Array(FIRST_CAPACITY);
  #values = new Float64Array(FIRST_CAPACITY);
  #start = 0;
  #end = 0;
  /** What has to be added to a place in the arrays for its number, which stays the same while others go. */
  #offset = 0;
  #written = new Writing(0);

  /** What it takes, with the room that it has for more: where there are many names, most of them have few points. */
  get bytes(): number {
    return OBJECTS_BYTES + this.#ts.length * BYTES_PER_POINT + this.#written.bytes;
  }

  get isEmpty(): boolean {
    return this.#end === this.#start;
  }

  /** A time that has a point already keeps it. */
  put(tsMs: number, value: number): void {
    const at = this.#end > this.#start && tsMs <= (this.#ts[this.#end - 1] ?? 0) ? this.#indexOf(tsMs) : this.#end;
    if (at < this.#end && this.#ts[at] === tsMs) return;
    // What is written has a point missing now; those behind it have other numbers.
    if (at < this.#end) this.#written = new Writing(0);
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

  /** The points as an array in JSON; nothing where there are more than `maxPoints`. */
  toJson({ fromMs, toMs }: { fromMs: number; toMs: number }, maxPoints: number): string | undefined {
    const [from, to] = [this.#indexOf(fromMs), this.#indexOf(toMs + 1)];
    if (to - from > maxPoints) return undefined;
    // A look at the newest alone must not cost the rest of what is written.
    const writing = (to - from) * 2 < this.#written.count ? new Writing(0) : this.#written;
    return writing.write(from + this.#offset, to + this.#offset, (number) => {
      const index = number - this.#offset;
      return `{"ts":"${toIsoTime(this.#ts[index] ?? 0)}","value":${this.#values[index]}},`;
    });
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
/** The objects that a track is made of, its name and its place in a map, about. */
const OBJECTS_BYTES = 512;
const BYTES_PER_LENGTH = 8;

/** A run of numbered things, written one behind the other, each with a comma at its end. */
class Writing {
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

  /** Those from `from` to before `to`, as an array. */
  write(from: number, to: number, textOf: (number: number) => string): string {
    const end = this.#first + this.#lengths.length;
    if (from < this.#first || from > end || to < end) [this.#first, this.#lengths, this.#text] = [from, [], ""];
    const gone = this.#lengths.splice(0, from - this.#first);
    if (gone.length > 0) this.#text = this.#text.slice(gone.reduce((sum, length) => sum + length));
    this.#first = from;
    for (let number = from + this.#lengths.length; number < to; number++) {
      const text = textOf(number);
      this.#lengths.push(text.length);
      this.#text += text;
    }
    return `[${this.#text.slice(0, -1)}]`;
  }
}
