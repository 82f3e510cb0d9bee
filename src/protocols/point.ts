import type { Labels } from "./metric-name.ts";
import { ProtocolError } from "./protocol-error.ts";

/** One value in another system's protocol, in the form that all decoders return. */
export interface Point {
  name: string;
  /** Without the name. Points of one series share the object. */
  labels: Labels;
  /** Undefined: the time of receipt. */
  tsMs: number | undefined;
  value: number | string;
  /** The number of the line or of the data point that the value comes from. */
  origin?: number;
}

/** A value that cannot be stored. */
export interface Rejected {
  name: string;
  reason: string;
  origin?: number | undefined;
}

export interface Decoded {
  points: Point[];
  rejected: Rejected[];
}

/** Points in one request, with those that are rejected. */
export const MAX_POINTS = 50_000;
/** Labels of one point. Each point of a request may have its own. */
export const MAX_LABELS = 64;

/** Characters of the name and the labels of one point. Names that are stored are shorter. Without this limit, points could share long texts. */
export const MAX_SERIES_LENGTH = 2_000;
export const NAME_TOO_LONG = "has a name or labels that are too long";
/** Shortens a name for a rejection. */
export const shortened = (name: string): string => (name.length > 100 ? `${name.slice(0, 100)}…` : name);

/** Collects the points of a request. Throws `ProtocolError` if there are too many. */
export class PointCollector implements Decoded {
  readonly points: Point[] = [];
  readonly rejected: Rejected[] = [];
  #measured: { labels: Labels; length: number } | undefined;

  add(point: Point): void {
    if (point.name.length + this.#lengthOf(point.labels) > MAX_SERIES_LENGTH) {
      this.reject({ name: shortened(point.name), reason: NAME_TOO_LONG, origin: point.origin });
      return;
    }
    this.#count();
    this.points.push(point);
  }

  reject(rejected: Rejected): void {
    this.#count();
    this.rejected.push(rejected);
  }

  /** Remembers the length of the last labels: the next point often has the same. */
  #lengthOf(labels: Labels): number {
    if (this.#measured?.labels !== labels) {
      const length = Object.entries(labels).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
      this.#measured = { labels, length };
    }
    return this.#measured.length;
  }

  #count(): void {
    if (this.points.length + this.rejected.length >= MAX_POINTS) throw tooManyPoints();
  }
}

export const tooManyPoints = (): ProtocolError =>
  new ProtocolError("too_large", `More than ${MAX_POINTS.toLocaleString("en-US")} points in one request`);
