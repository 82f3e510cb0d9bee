import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../trial/accounts.ts";
import { type Product, until } from "../trial/product.ts";
import { killUnderLoad, TIMEOUT_MS } from "./kills.ts";

/** Spin-ups and commands while the broker dies: every one that was accepted is carried out, and none hangs. */

export interface CommandsOutcome {
  commands: number;
  spinups: number;
  /** Accepted, and neither carried out nor expired: commands that are not `done`, spin-ups that nobody ran to their end. */
  undone: string[];
  recoveredMs: number[];
}

/** Access points that are sent commands; one takes a command every ten seconds. */
const ACCESS_POINTS = 20;
const SPINUP_EVERY_MS = 5_000;
const PAUSE_MS = 200;
const COMMANDS = ["power_off", "power_on", "set_tx_power 10", "reboot"];
const POLL_MS = 250;

const spec = (num_access_points: number, duration: number) => ({
  access_point_type: "LiFi",
  num_access_points,
  locations: ["51.4545,-2.5879"],
  num_devices: 5,
  duration,
});

export async function killUnderCommands(
  product: Product,
  kills: number,
  signal?: AbortSignal,
): Promise<CommandsOutcome> {
  const { token } = await makeUser(product.dataDir, `faults-${Date.now()}@example.com`);
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const post = async <T>(path: string, body?: object): Promise<T | undefined> => {
    const response = await fetch(`${product.url}${path}`, {
      method: "POST",
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch(() => undefined);
    return response?.ok ? ((await response.json()) as T) : undefined;
  };
  const spinUp = (count: number, duration: number) =>
    post<{ job_number: string; ap_ids: string[] }>("/api/v1/emulator/spinup", { emulators: [spec(count, duration)] });
  const stateOf = async (jobNumber: string): Promise<string> => {
    const response = await fetch(`${product.url}/api/v1/jobs/${jobNumber}`, { headers }).catch(() => undefined);
    return response?.ok ? ((await response.json()) as { state: string }).state : "unknown";
  };

  const network = await spinUp(ACCESS_POINTS, 3_600);
  if (network === undefined) throw new Error("The access points could not be spun up.");
  const accepted: { what: string; jobNumber: string }[] = [];
  let isOver = false;
  const commanding = (async () => {
    for (let i = 0; !isOver; i++, await sleep(PAUSE_MS)) {
      const path = `/api/v1/send_command?agent_id=${network.ap_ids[i % ACCESS_POINTS]}`;
      const sent = await post<{ job_number: string }>(`${path}&command=${COMMANDS[i % COMMANDS.length]}`);
      // Refused within ten seconds of another one: not a promise that could be broken.
      if (sent !== undefined) accepted.push({ what: "command", jobNumber: sent.job_number });
    }
  })();
  const spinning = (async () => {
    for (; !isOver; await sleep(SPINUP_EVERY_MS)) {
      const spun = await spinUp(2, 3);
      if (spun !== undefined) accepted.push({ what: "spin-up", jobNumber: spun.job_number });
    }
  })();
  let recoveredMs: number[];
  try {
    recoveredMs = await killUnderLoad(product, { part: "broker", kills, progress: () => accepted.length, signal });
  } finally {
    isOver = true;
    await Promise.all([commanding, spinning]);
  }
  const undone = new Map(accepted.map(({ what, jobNumber }) => [jobNumber, what]));
  await until(async () => {
    for (const jobNumber of undone.keys()) if ((await stateOf(jobNumber)) === "done") undone.delete(jobNumber);
    if (undone.size > 0) await sleep(POLL_MS);
    return undone.size === 0;
  }, 2 * TIMEOUT_MS).catch(() => {});
  await fetch(`${product.url}/api/v1/emulator/${network.job_number}`, { method: "DELETE", headers });
  return {
    commands: accepted.filter(({ what }) => what === "command").length,
    spinups: accepted.filter(({ what }) => what === "spin-up").length,
    undone: await Promise.all([...undone].map(async ([jobNumber, what]) => `${what}: ${await stateOf(jobNumber)}`)),
    recoveredMs,
  };
}
