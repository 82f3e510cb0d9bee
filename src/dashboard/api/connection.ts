import { observable } from "../lib/observable.ts";

/** Whether the service can be reached and does its work, as far as the last calls tell. */
export type Connection =
  | { state: "fine" }
  /** Nothing answers: the network, or the service, is away. */
  | { state: "away" }
  /** It answers that it cannot do its work for now. */
  | { state: "impaired"; down: string[] };

export const connection = observable<Connection>({ state: "fine" });

/** What people call the parts that `/readyz` names. */
const PARTS: Record<string, string> = {
  libsql: "the accounts database",
  clickhouse: "the telemetry store",
  broker: "the message broker",
  objects: "the service's own storage",
  passwords: "the password service",
};

export function wentWell(): void {
  if (connection.get().state === "away") connection.set({ state: "fine" });
}

export function wentAway(): void {
  connection.set({ state: "away" });
}

let isAsking = false;

/** Something cannot be done now. Asks what is down, again and again until nothing is. */
export async function wentWrong(): Promise<void> {
  if (isAsking) return;
  isAsking = true;
  try {
    for (;;) {
      const down = await partsDown();
      if (down !== undefined) connection.set(down.length === 0 ? { state: "fine" } : { state: "impaired", down });
      if (down?.length === 0) return;
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    }
  } finally {
    isAsking = false;
  }
}

/** Nothing where nobody answers: whoever calls next says so. */
async function partsDown(): Promise<string[] | undefined> {
  try {
    const response = await fetch("/readyz");
    const { parts = {} } = (await response.json()) as { parts?: Record<string, "up" | "down"> };
    return Object.keys(parts)
      .filter((name) => parts[name] === "down")
      .map((name) => PARTS[name] ?? name);
  } catch {
    wentAway();
    return undefined;
  }
}

const LOOK_EVERY_MS = 2_000;

/** Calls back once the service answers again, if it does not now or did not a moment ago. The answer ends the waiting. */
export function whenBack(act: () => void): () => void {
  let wasAway = connection.get().state === "away";
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const look = async () => {
    const answers = await fetch("/healthz").then(
      ({ ok }) => ok,
      () => false,
    );
    if (answers) {
      wentWell();
      if (wasAway) act();
      return;
    }
    wasAway = true;
    wentAway();
    waiting = setTimeout(() => void look(), LOOK_EVERY_MS);
  };
  void look();
  return () => clearTimeout(waiting);
}
