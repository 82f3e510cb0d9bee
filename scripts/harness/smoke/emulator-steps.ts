import type { Api } from "../api.ts";
import type { Callers } from "./account-steps.ts";
import type { Made } from "./cleanup.ts";
import { eventually, expectThat } from "./steps.ts";

const TYPES = ["5G", "WiFi", "LiFi"];
/** They go with the job, which is removed long before. */
const DURATION_S = 300;
const PATIENCE_S = 60;

/** Spins up an access point of each type, and sees each report. */
export async function spinsUp(api: Api, made: Made, { user }: Callers): Promise<void> {
  const spec = { num_access_points: 1, locations: ["Bristol, UK"], num_devices: 5, duration: DURATION_S };
  const emulators = TYPES.map((access_point_type) => ({ access_point_type, ...spec }));
  const { job_number: job, ap_ids: apIds } = await api.call<{ job_number: string; ap_ids: string[] }>(
    "POST",
    "/api/v1/emulator/spinup",
    user,
    { emulators },
  );
  made.note(`/api/v1/emulator/${job}`);
  expectThat(apIds.length === TYPES.length, `${apIds.length} access points were made, not ${TYPES.length}`);
  for (const apId of apIds) {
    await eventually(`Two reports of ${apId}`, PATIENCE_S, async () => {
      const metrics = `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=load`;
      const { series } = await api.call<{ series: { points: unknown[] }[] }>("GET", metrics, user);
      return (series[0]?.points.length ?? 0) >= 2 || undefined;
    });
  }
}
