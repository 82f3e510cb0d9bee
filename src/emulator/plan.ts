import type { AccessPointType, EmulatorSpinupRequest } from "../schemas/emulator.ts";
import type { Location } from "./locations.ts";
import { EMULATED_PREFIX, JOB_CHARACTERS } from "./names.ts";

/** Which agents a request stands for, and what whoever runs them is told. */
export interface Plan {
  agents: { apId: string; configuration: Record<string, unknown> }[];
  detail: string;
  messages(passwordOf: (apId: string) => string): SpinupMessage[];
}

export interface SpinupMessage {
  job_number: string;
  part: number;
  parts: number;
  emulators: {
    access_point_type: AccessPointType;
    num_devices: number;
    duration: number;
    agents: { ap_id: string; password: string; latitude: number; longitude: number }[];
  }[];
}

const MAX_AGENTS_PER_MESSAGE = 1_000;
/** What every emulated access point obeys. */
const COMMANDS = ["power_on", "power_off", "reboot", "set_tx_power", "set_channel"];

/** Every location has been found by then. */
const NOWHERE = { latitude: 0, longitude: 0 };

interface PlannedAgent {
  spec: number;
  apId: string;
  latitude: number;
  longitude: number;
}

export function planSpinup(
  { emulators }: EmulatorSpinupRequest,
  jobNumber: string,
  located: ReadonlyMap<string, Location>,
): Plan {
  const counts = new Map<AccessPointType, number>();
  const planned = emulators.flatMap(({ access_point_type: type, num_access_points, locations }, spec) =>
    Array.from({ length: num_access_points }, (_, i): PlannedAgent => {
      const number = (counts.get(type) ?? 0) + 1;
      counts.set(type, number);
      const apId = `${EMULATED_PREFIX}${type.toLowerCase()}-${jobNumber.slice(0, JOB_CHARACTERS)}-${String(number).padStart(4, "0")}`;
      const { latitude, longitude } = located.get(locations[i % locations.length] ?? "") ?? NOWHERE;
      return { spec, apId, latitude, longitude };
    }),
  );
  const parts = Math.ceil(planned.length / MAX_AGENTS_PER_MESSAGE);
  return {
    detail: [...counts].map(([type, count]) => `${count} ${type}`).join(", "),
    agents: planned.map(({ spec, apId, latitude, longitude }) => ({
      apId,
      configuration: {
        emulated: true,
        access_point_type: emulators[spec]?.access_point_type,
        num_devices: emulators[spec]?.num_devices,
        duration: emulators[spec]?.duration,
        job_number: jobNumber,
        interval: 1,
        geolocation: { latitude, longitude },
        commands: COMMANDS,
      },
    })),
    messages: (passwordOf) =>
      Array.from({ length: parts }, (_, i) => {
        const its = planned.slice(i * MAX_AGENTS_PER_MESSAGE, (i + 1) * MAX_AGENTS_PER_MESSAGE);
        return {
          job_number: jobNumber,
          part: i + 1,
          parts,
          emulators: [...Map.groupBy(its, ({ spec }) => spec)].map(([spec, agents]) => ({
            access_point_type: emulators[spec]?.access_point_type ?? "WiFi",
            num_devices: emulators[spec]?.num_devices ?? 1,
            duration: emulators[spec]?.duration ?? 1,
            agents: agents.map(({ apId, latitude, longitude }) => ({
              ap_id: apId,
              password: passwordOf(apId),
              latitude,
              longitude,
            })),
          })),
        };
      }),
  };
}
