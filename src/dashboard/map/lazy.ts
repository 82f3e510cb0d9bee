/** The pause after a failed attempt. */
const RETRY_DELAY_MS = 10_000;

/**
 * Returns a function that loads a value on its first call and caches it. Until then the function returns undefined, and calls
 * `onLoaded` later: the map draws without the value first. A failed load is retried by a later call.
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
          notBeforeMs = Date.now() + RETRY_DELAY_MS;
        },
      )
      .finally(() => {
        isLoading = false;
        const callbacks = [...waiting];
        waiting.clear();
        if (value !== undefined) for (const callback of callbacks) callback();
      });
    return undefined;
  };
}
