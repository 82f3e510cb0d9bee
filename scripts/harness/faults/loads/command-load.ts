import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../../accounts.ts";
import { until } from "../../product.ts";
import type { Target } from "../../target.ts";
import type { Load, Verdict } from "./load.ts";

/** Access points are spun up and commanded: every command and spin-up that was accepted is carried out, and none hangs. */

export interface CommandsOptions {
  /** That are sent commands; one takes a command every ten seconds. */
  accessPoints: number;
  pauseMs: number;
  spinUpEveryMs: number;
}

export interface CommandsLoad extends Load {
  /** Jobs accepted so far. */
  count(kind: Accepted["kind"]): number;
  settle(): Promise<CommandsVerdict>;
}

export interface CommandsVerdict extends Verdict {
  /** Accepted, and neither carried out nor expired: commands that are not `done`, spin-ups that nobody ran to their end. */
  undone: string[];
}

interface Accepted {
  kind: "command" | "spin-up";
  jobNumber: string;
}

const COMMANDS = ["power_off", "power_on", "set_tx_power 10", "reboot"];
const DONE_WITHIN_MS = 120_000;
const POLL_MS = 250;

const spec = (num_access_points: number, duration: number) => ({
  access_point_type: "LiFi",
  num_access_points,
  locations: ["51.4545,-2.5879"],
  num_devices: 5,
  duration,
});

export async function startCommands(target: Target, options: CommandsOptions): Promise<CommandsLoad> {
  const { accessPoints, pauseMs, spinUpEveryMs } = options;
  const { token } = await makeUser(target.dataDir, `faults-commands-${Date.now()}@example.com`);
  const spinUp = async (count: number, duration: number) => {
    const answer = await target.ask("/api/v1/emulator/spinup", { token, body: { emulators: [spec(count, duration)] } });
    return answer?.status === 200 ? (answer.body as { job_number: string; ap_ids: string[] }) : undefined;
  };
  const stateOf = async (jobNumber: string): Promise<string> => {
    const answer = await target.ask(`/api/v1/jobs/${jobNumber}`, { token });
    return answer?.status === 200 ? (answer.body as { state: string }).state : "unknown";
  };

  const network = await spinUp(accessPoints, 3_600);
  if (network === undefined) throw new Error("The access points could not be spun up.");
  const accepted: Accepted[] = [];
  const stop = new AbortController();
  const commanding = (async () => {
    for (let i = 0; !stop.signal.aborted; i++, await sleep(pauseMs)) {
      const query = new URLSearchParams({
        agent_id: network.ap_ids[i % accessPoints] ?? "",
        command: COMMANDS[i % COMMANDS.length] ?? "",
      });
      const answer = await target.ask(`/api/v1/send_command?${query}`, { method: "POST", token });
      // Refused within ten seconds of another one: not a promise that could be broken.
      if (answer?.status === 200)
        accepted.push({ kind: "command", jobNumber: (answer.body as { job_number: string }).job_number });
    }
  })();
  const spinning = (async () => {
    while (!stop.signal.aborted) {
      const spun = await spinUp(2, 3);
      if (spun !== undefined) accepted.push({ kind: "spin-up", jobNumber: spun.job_number });
      await sleep(spinUpEveryMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();

  return {
    name: "commands",
    get acknowledged() {
      return accepted.length;
    },
    count: (kind) => accepted.filter((job) => job.kind === kind).length,
    async stop() {
      stop.abort();
      await Promise.all([commanding, spinning]);
    },
    async settle() {
      const startedMs = performance.now();
      const undone = new Map(accepted.map(({ kind, jobNumber }) => [jobNumber, kind]));
      await until(async () => {
        for (const jobNumber of undone.keys()) if ((await stateOf(jobNumber)) === "done") undone.delete(jobNumber);
        if (undone.size > 0) await sleep(POLL_MS);
        return undone.size === 0;
      }, DONE_WITHIN_MS).catch(() => {});
      const settledMs = performance.now() - startedMs;
      await target.ask(`/api/v1/emulator/${network.job_number}`, { method: "DELETE", token });
      const states = await Promise.all(
        [...undone].map(async ([jobNumber, kind]) => `${kind}: ${await stateOf(jobNumber)}`),
      );
      return {
        lost: undone.size,
        // A job has one number and one answer, so there is nothing that could be there twice.
        doubled: 0,
        faults: Object.fromEntries(
          [...Map.groupBy(states, (state) => state)].map(([state, its]) => [state, its.length]),
        ),
        undone: states,
        settledMs,
      };
    },
  };
}
