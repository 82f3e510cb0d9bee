/** Values of which only the middle and the end are of interest. */
export class Quantiles {
  readonly #values: number[] = [];
  #isSorted = false;

  add(value: number): void {
    this.#values.push(value);
    this.#isSorted = false;
  }

  get count(): number {
    return this.#values.length;
  }

  at(quantile: number): number {
    if (!this.#isSorted) this.#values.sort((a, b) => a - b);
    this.#isSorted = true;
    return this.#values[Math.min(this.#values.length - 1, Math.floor(this.#values.length * quantile))] ?? 0;
  }
}
