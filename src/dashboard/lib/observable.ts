import { useEffect, useState } from "preact/hooks";

/** A value that several parts of the page look at. */
export interface Observable<T> {
  get(): T;
  set(value: T): void;
  /** Calls back at every change; the answer ends it. */
  subscribe(listener: () => void): () => void;
}

export function observable<T>(value: T): Observable<T> {
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The value, and a new drawing whenever it changes. */
export function useObserved<T>(observed: Observable<T>): T {
  const [value, setValue] = useState(() => observed.get());
  useEffect(() => {
    const update = () => setValue(() => observed.get());
    // It may have changed between the drawing and now.
    update();
    return observed.subscribe(update);
  }, [observed]);
  return value;
}
