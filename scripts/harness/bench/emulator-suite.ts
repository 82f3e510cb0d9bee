import { print } from "../../../src/programs/shared/cli.ts";
import { countPoints } from "../clickhouse.ts";
import { untilTownsLoaded } from "../client.ts";
import { type Envelope, openSocket, type Queued } from "../job-socket.ts";
import { until } from "../product.ts";
import type { BenchContext } from "./suite.ts";

/** A thousand emulated access points: how soon they are online, and whether every sample that they sent is stored. */

const ACCESS_POINTS = { "5G": 334, WiFi: 333, LiFi: 333 };
const PLACES = ["Bristol, UK", "Bath, UK", "Cardiff, UK", "Exeter, UK"];
const POLL_MS = 500;
const ONLINE_WITHIN_MS = 300_000;
/** After the end of their run. */
const ENDED_WITHIN_MS = 120_000;
const STORED_WITHIN_MS = 30_000;

interface SpinUp extends Queued {
  websocket: string;
  agents: number;
}

export async function benchEmulator(context: BenchContext): Promise<void> {
  const { product, client, clickhouse, isQuick, report } = context;
  const { token } = context.user;
  const [share, duration] = isQuick ? [0.1, 15] : [1, 300];
  const emulators = Object.entries(ACCESS_POINTS).map(([access_point_type, count]) => ({
    access_point_type,
    num_access_points: Math.ceil(count * share),
    locations: PLACES,
    num_devices: 20,
    duration,
  }));
  await untilTownsLoaded(client, token);
  const startedMs = performance.now();
  const response = await client.attempt("/api/v1/emulator/spinup", { token, body: { emulators } });
  const tookMs = performance.now() - startedMs;
  if (response?.status !== 200) throw new Error(`The spin-up was rejected with ${response?.status}`);
  const { websocket, agents, job_number } = response.body as SpinUp;
  report.add(`spin-up of ${agents} access points: until the response`, tookMs, "ms");
  const messages: Envelope<{ samples?: number }[]>[] = [];
  const onText = (text: string) => messages.push(JSON.parse(text));
  const socket = await openSocket({ url: product.url, path: websocket, token, onText });

  let online = 0;
  const areOnline = async (): Promise<boolean> => {
    const listed = await client.attempt("/api/v1/agents/", { token });
    const list = listed?.status === 200 ? (listed.body as { online: boolean }[]) : [];
    online = Math.max(online, list.filter((agent) => agent.online).length);
    return online >= agents;
  };
  await until(areOnline, Math.min(ONLINE_WITHIN_MS, duration * 1000), POLL_MS).catch(() => {});
  report.add("until all of them are online", (performance.now() - startedMs) / 1000, "s", { online });
  print(`Running for ${duration} s.`);
  await until(() => messages.some(({ final }) => final), duration * 1000 + ENDED_WITHIN_MS);
  socket.close();
  const sent = messages.at(-1)?.data.reduce((sum, { samples = 0 }) => sum + samples, 0) ?? 0;
  let stored = 0;
  const areStored = async (): Promise<boolean> => {
    stored = await countPoints(clickhouse, "load", `emu-%-${job_number.slice(0, 8)}-%`);
    return stored >= sent;
  };
  await until(areStored, STORED_WITHIN_MS, POLL_MS).catch(() => {});
  const ratio = { of: "one per second from each", value: sent / (agents * duration) };
  report.add("samples sent, one per second", sent, "", { stored }, ratio);
  report.require("every sample that was sent is stored", stored >= sent, { sent, stored });
}
