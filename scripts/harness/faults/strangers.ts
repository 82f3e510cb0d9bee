import { setTimeout as sleep } from "node:timers/promises";
import { connectAsync } from "mqtt";
import type { Outcome } from "./row.ts";
import { type Fault, underLoad } from "./under-load.ts";
import type { World } from "./world.ts";

/** Other programs and web pages on this machine ask every store, without a login, all the time. */

const HELD_MS = 8_000;
/** Tens of attempts a second: more would only measure the machine. */
const PAUSE_MS = 100;
const TIMEOUT_MS = 5_000;
const PAGE = { Origin: "https://page.example.com", "Content-Type": "text/plain" };

/** Each returns whether it was let in. An attempt without an answer was not. */
function attempts({ libsql = "", clickhouse = "", mqtt = "" }: Record<string, string>): (() => Promise<boolean>)[] {
  const [accounts, telemetry] = [new URL(libsql).origin, new URL(clickhouse).origin];
  const asks = async (url: string, init: RequestInit = {}): Promise<boolean> => {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    await response.arrayBuffer();
    return response.ok;
  };
  const post = (url: string, body: string) => asks(url, { method: "POST", headers: PAGE, body });
  const count = encodeURIComponent("SELECT count() FROM controller.points_v1");
  const select = { requests: [{ type: "execute", stmt: { sql: "SELECT * FROM users" } }] };
  return [
    () => post(`${accounts}/v2/pipeline`, JSON.stringify(select)),
    () => asks(`${accounts}/dump`),
    () => post(telemetry, "DROP TABLE controller.points_v1"),
    () => asks(`${telemetry}/?query=${count}`, { headers: PAGE }),
    () => asks(`${telemetry}/?user=default&query=${count}`, { headers: { Authorization: `Basic ${btoa("owner:")}` } }),
    async () => {
      const client = await connectAsync(mqtt, { reconnectPeriod: 0, connectTimeout: TIMEOUT_MS });
      await client.endAsync(true);
      return true;
    },
  ];
}

export async function strangers(world: World, signal: AbortSignal): Promise<Outcome> {
  let [tried, letIn] = [0, 0];
  const end = new AbortController();
  const fault: Fault<World> = {
    holdMs: HELD_MS,
    begin: (stage) => {
      for (const attempt of attempts(stage.target().urls))
        void (async () => {
          for (; !end.signal.aborted; await sleep(PAUSE_MS)) {
            tried++;
            if (await attempt().catch(() => false)) letIn++;
          }
        })();
    },
    end: () => end.abort(),
    promises: { exact: true, prompt: true },
  };
  try {
    const outcome = await underLoad(world, fault, signal);
    const broken = letIn > 0 ? [`${letIn} of ${tried} strangers were let in`] : [];
    return {
      ...outcome,
      broken: [...outcome.broken, ...broken],
      remarks: [`${tried} strangers refused`, ...outcome.remarks],
    };
  } finally {
    end.abort();
  }
}
