import type { Location } from "../geo/geocode.ts";
import { EMULATED_PREFIX, JOB_CHARACTERS } from "../schemas/agent.ts";
import type { AccessPointType, EmulatorSpinupRequest } from "../schemas/emulator.ts";
import { COMMANDS } from "./models/commands.ts";
import { spreadAround } from "./spread.ts";

/** The agents that a request creates, and the messages to the emulators that run them. */
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
    /** `site` identifies the location of the request. Devices move between the access points of one site. */
    agents: { ap_id: string; password: string; latitude: number; longitude: number; site: string }[];
  }[];
}

const MAX_AGENTS_PER_MESSAGE = 1_000;

/** An access point before its position is chosen. */
interface UnplacedAgent {
  /** Index in the request's `emulators`. */
  spec: number;
  apId: string;
  type: AccessPointType;
  centre: Location;
  site: string;
}

interface PlannedAgent {
  /** Index in the request's `emulators`. */
  spec: number;
  apId: string;
  site: string;
  latitude: number;
  longitude: number;
}

/** Plans the agents of a request. `positions` must have the position of each of its locations. */
export function planSpinup(
  { emulators }: EmulatorSpinupRequest,
  jobNumber: string,
  positions: ReadonlyMap<string, Location>,
): Plan {
  const counts = new Map<AccessPointType, number>();
  const unplaced = emulators.flatMap(({ access_point_type: type, num_access_points, locations }, spec) =>
    Array.from({ length: num_access_points }, (_, i) => {
      const number = (counts.get(type) ?? 0) + 1;
      counts.set(type, number);
      const apId = `${EMULATED_PREFIX}${type.toLowerCase()}-${jobNumber.slice(0, JOB_CHARACTERS)}-${String(number).padStart(4, "0")}`;
      const centre = positions.get(locations[i % locations.length] ?? "");
      if (centre === undefined) throw new Error("A location has no position");
      return { spec, apId, type, centre, site: `${centre.latitude},${centre.longitude}` };
    }),
  );
  const planned = placeAll(unplaced);
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
        const agentsOfPart = planned.slice(i * MAX_AGENTS_PER_MESSAGE, (i + 1) * MAX_AGENTS_PER_MESSAGE);
        return {
          job_number: jobNumber,
          part: i + 1,
          parts,
          emulators: [...Map.groupBy(agentsOfPart, ({ spec }) => spec)].map(([spec, agents]) => ({
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

/** Gives each access point its own position around its location. A single access point is placed exactly at the location. */
function placeAll(unplaced: readonly UnplacedAgent[]): PlannedAgent[] {
  const groupOf = ({ type, site }: UnplacedAgent): string => `${type} ${site}`;
  const countAtSite = countBy(unplaced, ({ site }) => site);
  const countInGroup = countBy(unplaced, groupOf);
  const placed = new Map<string, number>();
  return unplaced.map((accessPoint) => {
    const { spec, apId, type, centre, site } = accessPoint;
    const group = groupOf(accessPoint);
    const index = placed.get(group) ?? 0;
    placed.set(group, index + 1);
    const { latitude, longitude } =
      countAtSite.get(site) === 1 ? centre : spreadAround(centre, type, index, countInGroup.get(group) ?? 1);
    return { spec, apId, site, latitude, longitude };
  });
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}
