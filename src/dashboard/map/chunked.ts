/** Half a frame. */
const SLICE_MS = 8;

/** As `map`, a little at a time: a person may be dragging the map meanwhile. */
export async function mapInChunks<T, U>(items: readonly T[], make: (item: T) => U): Promise<U[]> {
  const made: U[] = [];
  let untilMs = performance.now() + SLICE_MS;
  for (const item of items) {
    made.push(make(item));
    if (performance.now() < untilMs) continue;
    await new Promise((resolve) => setTimeout(resolve));
    untilMs = performance.now() + SLICE_MS;
  }
  return made;
}
