import { signal } from "@preact/signals";

/** Whether the service responds and can do its work, according to the latest requests. */
export type Connection =
  | { state: "up" }
  /** No response: the network or the service is down. */
  | { state: "unreachable" }
  /** The service responds, but components that it needs are down. */
  | { state: "impaired"; down: string[] };

export const connection = signal<Connection>({ state: "up" });

/** Display names of the components that `/readyz` lists. */
const COMPONENT_NAMES: Record<string, string> = {
  libsql: "the accounts database",
  clickhouse: "the telemetry store",
  broker: "the message broker",
  objects: "the service's own storage",
  passwords: "the password service",
};

const CHECK_INTERVAL_MS = 2_000;

export function reportReachable(): void {
  if (connection.value.state === "unreachable") connection.value = { state: "up" };
}

export function reportUnreachable(): void {
  connection.value = { state: "unreachable" };
}

let isChecking = false;

/** Handles a 503 response: checks which components are down, and repeats the check until none is. */
export async function watchReadiness(): Promise<void> {
  if (isChecking) return;
  isChecking = true;
  try {
    for (;;) {
      const down = await downComponents();
      if (down !== undefined) connection.value = down.length === 0 ? { state: "up" } : { state: "impaired", down };
      if (down?.length === 0) return;
      await new Promise((resolve) => setTimeout(resolve, CHECK_INTERVAL_MS));
    }
  } finally {
    isChecking = false;
  }
}

/** Returns undefined if the service does not respond. */
async function downComponents(): Promise<string[] | undefined> {
  try {
    const response = await fetch("/readyz");
    const { parts = {} } = (await response.json()) as { parts?: Record<string, "up" | "down"> };
    return Object.keys(parts)
      .filter((name) => parts[name] === "down")
      .map((name) => COMPONENT_NAMES[name] ?? name);
  } catch {
    reportUnreachable();
    return undefined;
  }
}

/** Calls back when the service responds again after an outage; never if there is no outage. Returns a function that stops waiting. */
export function onReconnect(act: () => void): () => void {
  let wasUnreachable = connection.value.state === "unreachable";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const check = async () => {
    const isUp = await fetch("/healthz").then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) {
      reportReachable();
      if (wasUnreachable) act();
      return;
    }
    wasUnreachable = true;
    reportUnreachable();
    timer = setTimeout(() => void check(), CHECK_INTERVAL_MS);
  };
  void check();
  return () => clearTimeout(timer);
}
