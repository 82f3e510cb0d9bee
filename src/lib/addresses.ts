/** Splits a setting that lists addresses, separated by commas. */
export const splitAddresses = (text: string): string[] =>
  text
    .split(",")
    .map((address) => address.trim())
    .filter((address) => address !== "");

/** The addresses of the nodes of one server. The next use begins with the node that worked last, so that it waits for no dead one. */
export class Addresses {
  readonly #all: readonly string[];
  #current = 0;

  constructor(all: readonly string[]) {
    this.#all = all;
  }

  /** Tries one node after the other. Throws the error of the last one if none works. */
  async use<T>(attempt: (address: string) => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures++) {
      try {
        return await attempt(this.#all[this.#current] ?? "");
      } catch (error) {
        this.#current = (this.#current + 1) % this.#all.length;
        if (failures >= this.#all.length) throw error;
      }
    }
  }
}
