import { setTimeout as sleep } from "node:timers/promises";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import { Api } from "../api.ts";
import { clickhouseOf } from "../clickhouse.ts";
import { openSocket } from "../job-socket.ts";
import { until } from "../product.ts";
import type { BenchContext } from "./context.ts";

/** A thousand emulated access points: how soon they are there, and whether every sample that they sent is. */

const ACCESS_POINTS = { "5G": 334, WiFi: 333, LiFi: 333 };
const PLACES = ["Bristol, UK", "Bath, UK", "Cardiff, UK", "Exeter, UK"];
const POLL_MS = 500;
const ONLINE_WITHIN_MS = 300_000;
/** After their time. */
const ENDED_WITHIN_MS = 120_000;

interface Spinup {
  websocket: string;
  agents: number;
  job_number: string;
}

interface Message {
  final: boolean;
  data: { samples?: number; state?: string }[];
}

export async function benchEmulator({ product, isQuick, report }: BenchContext): Promise<void> {
  const share = isQuick ? 0.1 : 1;
  const duration = isQuick ? 15 : 300;
  const api = new Api(product.url);
  const { token } = await makeUser(product.dataDir, "bench@example.com");

  const emulators = Object.entries(ACCESS_POINTS).map(([access_point_type, count]) => ({
    access_point_type,
    num_access_points: Math.ceil(count * share),
    locations: PLACES,
    num_devices: 20,
    duration,
  }));
  const startedMs = performance.now();
  const { websocket, agents, job_number } = await api.call<Spinup>("POST", "/api/v1/emulator/spinup", token, {
    emulators,
  });
  const answeredMs = performance.now() - startedMs;
  const messages: Message[] = [];
  const onText = (text: string) => messages.push(JSON.parse(text) as Message);
  const socket = await openSocket({ url: product.url, path: websocket, token, onText });
  report.add({ what: `spin-up of ${agents} access points: until the answer`, value: answeredMs, unit: "ms" });

  const online = async (): Promise<number> => {
    const { status, text } = await api.send("GET", "/api/v1/agents/", { token });
    if (status !== 200) return 0;
    return (JSON.parse(text) as { online: boolean }[]).filter((agent) => agent.online).length;
  };
  let most = 0;
  while (most < agents && performance.now() - startedMs < Math.min(ONLINE_WITHIN_MS, duration * 1000)) {
    most = Math.max(most, await online());
    await sleep(POLL_MS);
  }
  report.add({
    what: "until all of them are online",
    value: (performance.now() - startedMs) / 1000,
    unit: "s",
    details: { online: most },
  });
  print(`Running for ${duration} s.`);
  await until(() => messages.some(({ final }) => final), duration * 1000 + ENDED_WITHIN_MS);
  socket.close();
  const sent = messages.at(-1)?.data.reduce((sum, { samples = 0 }) => sum + samples, 0) ?? 0;
  const clickhouse = clickhouseOf(product);
  const stored = async (): Promise<number> => {
    const result = await clickhouse.query({
      query: "SELECT count() AS count FROM points_v1 FINAL WHERE metric = 'load' AND ap_id LIKE {like:String}",
      query_params: { like: `emu-%-${job_number.slice(0, 8)}-%` },
      format: "JSONEachRow",
    });
    return Number((await result.json<{ count: string }>())[0]?.count);
  };
  let count = 0;
  for (let i = 0; i < 60 && count < sent; i++) {
    count = await stored();
    await sleep(POLL_MS);
  }
  await clickhouse.close();
  report.add({
    what: "samples sent, of a second each",
    value: sent,
    unit: "",
    ratio: { of: "one a second from each", value: sent / (agents * duration) },
    details: { stored: count },
  });
  report.require({
    what: "every sample that was sent is stored",
    isKept: count >= sent,
    details: { sent, stored: count },
  });
}
