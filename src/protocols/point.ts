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

/** Collects the points of a request. Throws `ProtocolError` if there are too many. */
export class PointCollector implements Decoded {
  readonly points: Point[] = [];
  readonly rejected: Rejected[] = [];

  add(point: Point): void {
    this.#count();
    this.points.push(point);
  }

  reject(rejected: Rejected): void {
    this.#count();
    this.rejected.push(rejected);
  }

  #count(): void {
    if (this.points.length + this.rejected.length >= MAX_POINTS) throw tooManyPoints();
  }
}

export const tooManyPoints = (): ProtocolError =>
  new ProtocolError("too_large", `More than ${MAX_POINTS.toLocaleString("en-US")} points in one request`);
