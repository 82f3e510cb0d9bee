import { observable } from "../lib/observable.ts";

/** Who has signed in. The token is kept in memory and for this tab, never longer. */
export interface Session {
  username: string;
  token: string;
  expiresAtMs: number;
  /** When to ask for the next one. */
  renewAtMs: number;
  isAdministrator: boolean;
}

const KEY = "session";

export const session = observable<Session | undefined>(restore());

/** Whether the person has to sign in again: `soon` while the token still holds. */
export const renewal = observable<"none" | "soon" | "due">("none");

export function signOut(): void {
  sessionStorage.removeItem(KEY);
  renewal.set("none");
  session.set(undefined);
}

export function begin(next: Session): void {
  sessionStorage.setItem(KEY, JSON.stringify(next));
  session.set(next);
  renewal.set("none");
  watch();
}

function restore(): Session | undefined {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Session | null;
    return stored !== null && stored.expiresAtMs > Date.now() ? stored : undefined;
  } catch {
    return undefined;
  }
}

/** Done when there is another token than this one; fails when the person signs out instead. */
export function renewed(token: string, signal?: AbortSignal): Promise<void> {
  if (session.get()?.token === token) renewal.set("due");
  return new Promise((resolve, reject) => {
    const look = () => {
      const now = session.get();
      if (now?.token === token && !signal?.aborted) return;
      end();
      if (signal?.aborted) reject(signal.reason);
      else if (now === undefined) reject(new Error("You have signed out."));
      else resolve();
    };
    const unsubscribe = session.subscribe(look);
    const end = () => {
      unsubscribe();
      signal?.removeEventListener("abort", look);
    };
    signal?.addEventListener("abort", look);
    look();
  });
}

let watching: ReturnType<typeof setTimeout> | undefined;

/** Asks for a renewal in time. A sleeping computer may be late, so the clock is looked at now and then. */
function watch(): void {
  clearTimeout(watching);
  const current = session.get();
  // A token may have been refused before its time: only another one mends that, not the clock.
  if (current === undefined || renewal.get() === "due") return;
  const nowMs = Date.now();
  renewal.set(nowMs >= current.expiresAtMs ? "due" : nowMs >= current.renewAtMs ? "soon" : "none");
  if (renewal.get() === "due") return;
  watching = setTimeout(watch, Math.min(10_000, current.expiresAtMs - nowMs));
}

watch();
