/** How many rows a second there were lately. */

const WINDOW_MS = 5_000;

export class Rate {
  #marks: { atMs: number; count: number }[] = [];

  /** So many there are in all by now. */
  mark(count: number, nowMs: number): void {
    // A mark a tenth of the window is as good as one for each message.
    if (nowMs - (this.#marks.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) >= WINDOW_MS / 10) {
      this.#marks.push({ atMs: nowMs, count });
    }
    while (this.#marks.length > 1 && nowMs - (this.#marks[0]?.atMs ?? nowMs) > WINDOW_MS) this.#marks.shift();
  }

  perSecond(count: number, nowMs: number): number {
    const first = this.#marks[0];
    if (first === undefined || nowMs - first.atMs < 500) return 0;
    return ((count - first.count) * 1_000) / (nowMs - first.atMs);
  }
}
