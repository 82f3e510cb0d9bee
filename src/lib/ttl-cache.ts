/** Values remembered for a while, and no more of them than `maxEntries`: the oldest goes first. */
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

  /** Forgets those that are named by what they hold. */
  forget(isOver: (value: V) => boolean): void {
    for (const [key, { value }] of this.#entries) if (isOver(value)) this.#entries.delete(key);
  }

  set(key: string, value: V, expiresMs: number): void {
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
