import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../accounts.ts";
import type { Target } from "../client.ts";
import { createWorkload, type Workload } from "../workload.ts";

/** Spins up access points and sends them commands: every accepted command and spin-up is carried out. */

interface CommandsOptions {
  /** How many receive commands. Each accepts one every ten seconds. */
  accessPoints: number;
  pauseMs: number;
  spinUpEveryMs: number;
}

const COMMANDS = ["power_off", "power_on", "set_tx_power 10", "reboot"];
const DONE_WITHIN_MS = 120_000;
const POLL_MS = 250;

export async function startCommands({ client, dataDir }: Target, options: CommandsOptions): Promise<Workload> {
  const { accessPoints, pauseMs, spinUpEveryMs } = options;
  const { token } = await makeUser(dataDir, `faults-commands-${Date.now()}@example.com`);
  const spinUp = async (num_access_points: number, duration: number) => {
    const spec = { access_point_type: "LiFi", locations: ["51.4545,-2.5879"], num_devices: 5 };
    const body = { emulators: [{ ...spec, num_access_points, duration }] };
    const response = await client.attempt("/api/v1/emulator/spinup", { token, body });
    return response?.status === 200 ? (response.body as { job_number: string; ap_ids: string[] }) : undefined;
  };
  const stateOf = async (jobNumber: string): Promise<string> => {
    const response = await client.attempt(`/api/v1/jobs/${jobNumber}`, { token });
    return response?.status === 200 ? (response.body as { state: string }).state : "unknown";
  };

  const network = await spinUp(accessPoints, 3_600);
  if (network === undefined) throw new Error("The access points could not be spun up.");
  /** The kind of each accepted job, by its number. */
  const accepted = new Map<string, "command" | "spin-up">();
  const stop = new AbortController();
  const commanding = (async () => {
    for (let i = 0; !stop.signal.aborted; i++, await sleep(pauseMs)) {
      const [agent_id, command] = [network.ap_ids[i % accessPoints] ?? "", COMMANDS[i % COMMANDS.length] ?? ""];
      const path = `/api/v1/send_command?${new URLSearchParams({ agent_id, command })}`;
      const response = await client.attempt(path, { method: "POST", token });
      // A command within ten seconds of another one is rejected, which breaks no guarantee.
      if (response?.status === 200) accepted.set((response.body as { job_number: string }).job_number, "command");
    }
  })();
  const spinning = (async () => {
    while (!stop.signal.aborted) {
      const spun = await spinUp(2, 3);
      if (spun !== undefined) accepted.set(spun.job_number, "spin-up");
      await sleep(spinUpEveryMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();

  return createWorkload("commands", stop, [commanding, spinning], {
    acknowledged: () => accepted.size,
    async settle() {
      const startedMs = performance.now();
      const undone = new Map(accepted);
      for (const endMs = startedMs + DONE_WITHIN_MS; undone.size > 0 && performance.now() < endMs; await sleep(POLL_MS))
        for (const jobNumber of undone.keys()) if ((await stateOf(jobNumber)) === "done") undone.delete(jobNumber);
      const settledMs = performance.now() - startedMs;
      await client.attempt(`/api/v1/emulator/${network.job_number}`, { method: "DELETE", token });
      const violations: Record<string, number> = {};
      for (const [jobNumber, kind] of undone) {
        const state = `${kind} ${await stateOf(jobNumber)}`;
        violations[state] = (violations[state] ?? 0) + 1;
      }
      // A job has one number and one result, so there are no duplicates.
      return { lost: undone.size, duplicates: 0, violations, settledMs };
    },
  });
}
