import { useEffect, useState } from "preact/hooks";

/** A value that several components use. */
export interface Observable<T> {
  get(): T;
  set(value: T): void;
  /** Calls back at every change. Returns a function that unsubscribes. */
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

/** Returns the value, and renders the component again whenever it changes. */
export function useObserved<T>(observed: Observable<T>): T {
  const [value, setValue] = useState(() => observed.get());
  useEffect(() => {
    const update = () => setValue(() => observed.get());
    // The value may have changed between the render and this effect.
    update();
    return observed.subscribe(update);
  }, [observed]);
  return value;
}
