import { setTimeout as sleep } from "node:timers/promises";
import { connectAsync } from "mqtt";
import type { FaultEnvironment } from "./environment.ts";
import { ENOUGH, HELD, type Outcome, underLoad } from "./under-load.ts";

/** Other programs and web pages of this machine query every store continuously, without a login. */

/** Tens of attempts per second; more would only measure the machine. */
const PAUSE_MS = 100;
const TIMEOUT_MS = 5_000;
const PAGE = { Origin: "https://page.example.com", "Content-Type": "text/plain" };

/** Returns attempts, each of which returns whether it succeeded. */
function attempts({ libsql = "", clickhouse = "", mqtt = "" }: Record<string, string>): (() => Promise<boolean>)[] {
  const [accounts, telemetry] = [new URL(libsql).origin, new URL(clickhouse).origin];
  const query = async (url: string, init: RequestInit = {}): Promise<boolean> => {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    await response.arrayBuffer();
    return response.ok;
  };
  const post = (url: string, body: string) => query(url, { method: "POST", headers: PAGE, body });
  const count = encodeURIComponent("SELECT count() FROM controller.points_v1");
  const select = { requests: [{ type: "execute", stmt: { sql: "SELECT * FROM users" } }] };
  const login = { Authorization: `Basic ${btoa("owner:")}` };
  return [
    () => post(`${accounts}/v2/pipeline`, JSON.stringify(select)),
    () => query(`${accounts}/dump`),
    () => post(telemetry, "DROP TABLE controller.points_v1"),
    () => query(`${telemetry}/?query=${count}`, { headers: PAGE }),
    () => query(`${telemetry}/?user=default&query=${count}`, { headers: login }),
    async () => {
      await (await connectAsync(mqtt, { reconnectPeriod: 0, connectTimeout: TIMEOUT_MS })).endAsync(true);
      return true;
    },
  ];
}

export async function strangers(environment: FaultEnvironment, signal: AbortSignal): Promise<Outcome> {
  let [tried, succeeded] = [0, 0];
  const end = new AbortController();
  const repeat = async (attempt: () => Promise<boolean>) => {
    for (; !end.signal.aborted; await sleep(PAUSE_MS)) {
      tried++;
      if (await attempt().catch(() => false)) succeeded++;
    }
  };
  const begin = () => attempts(environment.target().urls).forEach((attempt) => void repeat(attempt));
  try {
    const outcome = await underLoad(
      environment,
      { ...HELD, begin, end: () => end.abort() },
      { signal, atLeast: ENOUGH },
    );
    const violations = succeeded > 0 ? [`${succeeded} of ${tried} attempts without a login succeeded`] : [];
    const remarks = [`${tried} attempts without a login`, ...outcome.remarks];
    return { ...outcome, violations: [...outcome.violations, ...violations], remarks };
  } finally {
    end.abort();
  }
}
