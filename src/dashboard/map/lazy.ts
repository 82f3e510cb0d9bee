/** Not asked for more often than this after it could not be had. */
const PAUSE_MS = 10_000;

/**
 * Something that is fetched when it is first wanted, and kept. Whoever wants it gets what there is, and is called back once there is
 * more: a map draws what it has.
 */
export function lazy<T>(load: () => Promise<T>): (onLoaded: () => void) => T | undefined {
  let value: T | undefined;
  let isLoading = false;
  let notBeforeMs = 0;
  const waiting = new Set<() => void>();
  return (onLoaded) => {
    if (value !== undefined) return value;
    waiting.add(onLoaded);
    if (isLoading || Date.now() < notBeforeMs) return undefined;
    isLoading = true;
    load()
      .then(
        (loaded) => {
          value = loaded;
        },
        () => {
          notBeforeMs = Date.now() + PAUSE_MS;
        },
      )
      .finally(() => {
        isLoading = false;
        const told = [...waiting];
        waiting.clear();
        if (value !== undefined) for (const tell of told) tell();
      });
    return undefined;
  };
}
