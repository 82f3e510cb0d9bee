import { type Labels, MAX_NAME_LENGTH, shortened } from "./metric-name.ts";
import { ProtocolError } from "./protocol-error.ts";

/** One value in another system's protocol, in the form that all decoders return. */
export interface Point {
  name: string;
  /** Without the name. Points of one series share the object. */
  labels: Labels;
  /** The labels that name its agent, if they are not among the others. */
  agentLabels?: Labels | undefined;
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

/**
 * Characters of the name and the labels of one point, with those labels that name its agent and are not stored. Without this limit, many
 * points could share long texts.
 */
const MAX_SERIES_LENGTH = 1_000;
export const NAME_TOO_LONG = `has a name of more than ${MAX_NAME_LENGTH} characters with its labels`;

/** Whether a name is too long to be stored, even without labels. */
export const isTooLong = (name: string): boolean => name.length > MAX_NAME_LENGTH;

export const lengthOfLabels = (labels: Labels): number =>
  Object.entries(labels).reduce((sum, [key, value]) => sum + key.length + value.length, 0);

/** Collects the points of a request. Throws `ProtocolError` if there are too many. */
export class PointCollector implements Decoded {
  readonly points: Point[] = [];
  readonly rejected: Rejected[] = [];
  #measured: { labels: Labels; length: number } | undefined;

  add(point: Point): void {
    if (isTooLong(point.name) || point.name.length + this.#lengthOfLabels(point) > MAX_SERIES_LENGTH) {
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
  #lengthOfLabels({ labels, agentLabels = {} }: Point): number {
    if (this.#measured?.labels !== labels) {
      this.#measured = { labels, length: lengthOfLabels(labels) + lengthOfLabels(agentLabels) };
    }
    return this.#measured.length;
  }

  #count(): void {
    if (this.points.length + this.rejected.length >= MAX_POINTS) throw tooManyPoints();
  }
}

export const tooManyPoints = (): ProtocolError =>
  new ProtocolError("too_large", `More than ${MAX_POINTS.toLocaleString("en-US")} points in one request`);
