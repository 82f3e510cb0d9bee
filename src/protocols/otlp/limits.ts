import { MAX_POINTS, tooManyPoints } from "../point.ts";
import { ProtocolError } from "../protocol-error.ts";

/** Buckets of one histogram, and quantiles of one summary. SDKs make at most 160 of them. */
export const MAX_BUCKETS = 1_000;
/** Numbers of a list that are read. One more than the limit, so that the excess is noticed. */
export const MAX_READ = MAX_BUCKETS + 1;

/** Resources and metrics. Each data point may have its own. */
const MAX_GROUPS = 2 * MAX_POINTS;
const MAX_WEIGHT = 1_000_000;
/** An attribute needs more memory than a number. */
const ATTRIBUTE_WEIGHT = 2;

/** Limits what a request contains, in both encodings: a few kilobytes, compressed, could have millions of empty messages. */
export class RequestLimits {
  #groups = 0;
  #dataPoints = 0;
  #weight = 0;

  /** Counts a resource or a metric. */
  addGroup(): void {
    this.#groups += 1;
    if (this.#groups > MAX_GROUPS) throw tooManyPoints();
  }

  addDataPoint(): void {
    this.#dataPoints += 1;
    if (this.#dataPoints > MAX_POINTS) throw tooManyPoints();
  }

  /** Counts numbers in lists. */
  addNumbers(count: number): void {
    this.#add(count);
  }

  /** Counts attributes, quantiles, and items in the values of attributes. */
  addAttributes(count = 1): void {
    this.#add(count * ATTRIBUTE_WEIGHT);
  }

  #add(weight: number): void {
    this.#weight += weight;
    if (this.#weight > MAX_WEIGHT) {
      throw new ProtocolError("too_large", "The request has too many attributes, buckets and quantiles");
    }
  }
}
