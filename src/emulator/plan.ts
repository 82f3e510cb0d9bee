import { EMULATED_PREFIX, JOB_CHARACTERS } from "../accounts/agent-names.ts";
import type { Location } from "../geo/geocode.ts";
import type { AccessPointType, EmulatorSpinupRequest } from "../schemas/emulator.ts";
import { spreadAround } from "./spread.ts";

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
    /** `site`: the location that the access point was planned for. Devices move between the access points of one site. */
    agents: { ap_id: string; password: string; latitude: number; longitude: number; site: string }[];
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
  site: string;
  latitude: number;
  longitude: number;
}

export function planSpinup(
  { emulators }: EmulatorSpinupRequest,
  jobNumber: string,
  located: ReadonlyMap<string, Location>,
): Plan {
  const counts = new Map<AccessPointType, number>();
  const chosen = emulators.flatMap(({ access_point_type: type, num_access_points, locations }, spec) =>
    Array.from({ length: num_access_points }, (_, i) => {
      const number = (counts.get(type) ?? 0) + 1;
      counts.set(type, number);
      const apId = `${EMULATED_PREFIX}${type.toLowerCase()}-${jobNumber.slice(0, JOB_CHARACTERS)}-${String(number).padStart(4, "0")}`;
      const centre = located.get(locations[i % locations.length] ?? "") ?? NOWHERE;
      return { spec, apId, type, centre, site: `${centre.latitude},${centre.longitude}` };
    }),
  );
  const planned = placeAll(chosen);
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
            agents: agents.map(({ apId, latitude, longitude, site }) => ({
              ap_id: apId,
              password: passwordOf(apId),
              latitude,
              longitude,
              site,
            })),
          })),
        };
      }),
  };
}

interface Chosen {
  spec: number;
  apId: string;
  type: AccessPointType;
  centre: Location;
  site: string;
}

/** Gives each access point a place of its own around its location; one that is alone there stands exactly at it. */
function placeAll(chosen: readonly Chosen[]): PlannedAgent[] {
  const kindAt = ({ type, site }: Chosen): string => `${type} ${site}`;
  const atSite = countBy(chosen, ({ site }) => site);
  const ofKind = countBy(chosen, kindAt);
  const placed = new Map<string, number>();
  return chosen.map((accessPoint) => {
    const { spec, apId, type, centre, site } = accessPoint;
    const kind = kindAt(accessPoint);
    const index = placed.get(kind) ?? 0;
    placed.set(kind, index + 1);
    const { latitude, longitude } =
      atSite.get(site) === 1 ? centre : spreadAround(centre, type, index, ofKind.get(kind) ?? 1);
    return { spec, apId, site, latitude, longitude };
  });
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}
