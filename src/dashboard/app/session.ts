import { observable } from "../lib/observable.ts";

/** The signed-in user. The token stays in memory and in this tab's storage, which ends with the tab. */
export interface Session {
  username: string;
  token: string;
  expiresAtMs: number;
  /** When to ask the user to sign in again. */
  renewAtMs: number;
  isAdministrator: boolean;
}

const KEY = "session";

export const session = observable<Session | undefined>(restore());

/** Whether the user has to sign in again: `soon` while the token is still valid. */
export const renewal = observable<"none" | "soon" | "due">("none");

export function signOut(): void {
  sessionStorage.removeItem(KEY);
  renewal.set("none");
  session.set(undefined);
}

export function startSession(next: Session): void {
  sessionStorage.setItem(KEY, JSON.stringify(next));
  session.set(next);
  renewal.set("none");
  checkExpiry();
}

function restore(): Session | undefined {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Session | null;
    return stored !== null && stored.expiresAtMs > Date.now() ? stored : undefined;
  } catch {
    return undefined;
  }
}

/** Resolves when the session has another token than this one. Rejects if the user signs out instead, or on abort. */
export function waitForNewToken(token: string, signal?: AbortSignal): Promise<void> {
  if (session.get()?.token === token) renewal.set("due");
  return new Promise((resolve, reject) => {
    const check = () => {
      const current = session.get();
      if (current?.token === token && !signal?.aborted) return;
      end();
      if (signal?.aborted) reject(signal.reason);
      else if (current === undefined) reject(new Error("You have signed out."));
      else resolve();
    };
    const unsubscribe = session.subscribe(check);
    const end = () => {
      unsubscribe();
      signal?.removeEventListener("abort", check);
    };
    signal?.addEventListener("abort", check);
    check();
  });
}

const CHECK_INTERVAL_MS = 10_000;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Sets `renewal` in time. Timers of a sleeping computer fire late, so the clock is checked at intervals. */
function checkExpiry(): void {
  clearTimeout(timer);
  const current = session.get();
  // The service may have rejected the token before it expired. Then only a new token ends the renewal.
  if (current === undefined || renewal.get() === "due") return;
  const nowMs = Date.now();
  renewal.set(nowMs >= current.expiresAtMs ? "due" : nowMs >= current.renewAtMs ? "soon" : "none");
  if (renewal.get() === "due") return;
  timer = setTimeout(checkExpiry, Math.min(CHECK_INTERVAL_MS, current.expiresAtMs - nowMs));
}

checkExpiry();
