/** A cache whose values expire. When it holds more than `maxEntries`, it removes the entry that was set first. */
export class TtlCache<V> {
  readonly #entries = new Map<string, { value: V; expiresMs: number }>();
  readonly #maxEntries: number;
  readonly #now: () => number;

  constructor({ maxEntries, now = Date.now }: { maxEntries: number; now?: () => number }) {
    this.#maxEntries = maxEntries;
    this.#now = now;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.expiresMs > this.#now() ? entry.value : undefined;
  }

  /** Removes the entries whose value matches. */
  deleteWhere(matches: (value: V) => boolean): void {
    for (const [key, { value }] of this.#entries) if (matches(value)) this.#entries.delete(key);
  }

  set(key: string, value: V, expiresMs: number): void {
    // A Map keeps the order of insertion: the deletion moves the entry to the end.
    this.#entries.delete(key);
    this.#entries.set(key, { value, expiresMs });
    if (this.#entries.size > this.#maxEntries) {
      for (const oldest of this.#entries.keys()) {
        this.#entries.delete(oldest);
        break;
      }
    }
  }
}
