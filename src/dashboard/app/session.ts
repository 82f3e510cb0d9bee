import { signal } from "@preact/signals";

/** The signed-in user. The token stays in memory and in this tab's storage, which ends with the tab. */
export interface Session {
  username: string;
  token: string;
  expiresAtMs: number;
  /** When to ask the user to sign in again. */
  renewAtMs: number;
  isAdministrator: boolean;
  /** What the token allows. */
  scopes: readonly string[];
}

/** The scopes that the page depends on. */
export type Scope =
  | "users:manage"
  | "agents:manage"
  | "apps:manage"
  | "telemetry:read"
  | "emulator:run"
  | "commands:send"
  | "audit:read";

const KEY = "session";

export const session = signal<Session | undefined>(restore());

/** Whether the user has to sign in again: `soon` while the token is still valid. */
export const renewal = signal<"none" | "soon" | "due">("none");

/** Returns whether the token of the session has the scope. For parts of the page that would be of no use without it. */
export const may = (scope: Scope): boolean => session.value?.scopes.includes(scope) ?? false;

export function signOut(): void {
  sessionStorage.removeItem(KEY);
  renewal.value = "none";
  session.value = undefined;
}

export function startSession(next: Session): void {
  sessionStorage.setItem(KEY, JSON.stringify(next));
  session.value = next;
  renewal.value = "none";
  checkExpiry();
}

function restore(): Session | undefined {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Session | null;
    // An earlier version of this page stored no scopes.
    const isComplete = stored !== null && Array.isArray(stored.scopes);
    return isComplete && stored.expiresAtMs > Date.now() ? stored : undefined;
  } catch {
    return undefined;
  }
}

/** Resolves when the session has another token than this one. Rejects if the user signs out instead, or on abort. */
export function waitForNewToken(token: string, abort?: AbortSignal): Promise<void> {
  if (session.value?.token === token) renewal.value = "due";
  return new Promise((resolve, reject) => {
    let isSettled = false;
    let unsubscribe: (() => void) | undefined;
    const check = () => {
      const current = session.value;
      if (isSettled || (current?.token === token && !abort?.aborted)) return;
      isSettled = true;
      unsubscribe?.();
      abort?.removeEventListener("abort", check);
      if (abort?.aborted) reject(abort.reason);
      else if (current === undefined) reject(new Error("You have signed out."));
      else resolve();
    };
    abort?.addEventListener("abort", check);
    // This calls `check` at once, before there is a subscription to end.
    unsubscribe = session.subscribe(check);
    if (isSettled) unsubscribe();
  });
}

const CHECK_INTERVAL_MS = 10_000;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Sets `renewal` in time. Timers of a sleeping computer fire late, so the clock is checked at intervals. */
function checkExpiry(): void {
  clearTimeout(timer);
  const current = session.value;
  // The service may have rejected the token before it expired. Then only a new token ends the renewal.
  if (current === undefined || renewal.value === "due") return;
  const nowMs = Date.now();
  renewal.value = nowMs >= current.expiresAtMs ? "due" : nowMs >= current.renewAtMs ? "soon" : "none";
  if (renewal.value === "due") return;
  timer = setTimeout(checkExpiry, Math.min(CHECK_INTERVAL_MS, current.expiresAtMs - nowMs));
}

checkExpiry();
