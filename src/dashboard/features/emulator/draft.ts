import type { AccessPointType, EmulatorSpinupRequest } from "../../../schemas/emulator.ts";
import { fieldErrorOf } from "../../components/form.tsx";
import { type Duration, secondsOf, TEN_MINUTES } from "./duration.ts";

/** A request as it is being filled in: numbers are what was typed. */
export interface Draft {
  groups: readonly Group[];
  /** For all groups; without it each has its own. */
  duration: Duration | undefined;
}

export interface Group {
  /** Tells one from another, also after others were removed. */
  key: number;
  technology: AccessPointType;
  accessPoints: string;
  devices: string;
  places: readonly string[];
  duration: Duration;
}

export const TECHNOLOGIES: readonly (readonly [AccessPointType, string])[] = [
  ["5G", "5G"],
  ["WiFi", "WiFi"],
  ["LiFi", "LiFi"],
];
/** The service's own limits. */
export const LIMITS = { groups: 100, accessPoints: 1_000, accessPointsInAll: 10_000, devices: 100_000, places: 1_000 };

/** So that a newcomer need only press the button. */
const FIRST: Group = {
  key: 0,
  technology: "LiFi",
  accessPoints: "5",
  devices: "8",
  places: ["Bristol, GB"],
  duration: TEN_MINUTES,
};
export const NEW_DRAFT: Draft = { groups: [FIRST], duration: TEN_MINUTES };

/** One more group: like the last, of another technology. */
export function withGroup({ groups, duration }: Draft): Draft {
  const last = groups.at(-1) ?? FIRST;
  const at = TECHNOLOGIES.findIndex(([technology]) => technology === last.technology);
  const technology = TECHNOLOGIES[(at + 1) % TECHNOLOGIES.length]?.[0] ?? last.technology;
  const key = Math.max(...groups.map((group) => group.key)) + 1;
  return { duration, groups: [...groups, { ...last, key, technology }] };
}

const durationOf = (draft: Draft, group: Group): Duration => draft.duration ?? group.duration;

export const requestOf = (draft: Draft): EmulatorSpinupRequest => ({
  emulators: draft.groups.map((group) => ({
    access_point_type: group.technology,
    num_access_points: Number(group.accessPoints),
    locations: [...group.places],
    num_devices: Number(group.devices),
    duration: secondsOf(durationOf(draft, group)),
  })),
});

export interface GroupFaults {
  accessPoints: string | undefined;
  devices: string | undefined;
  duration: string | undefined;
  /** Of the field, or of some of its places. */
  places: string | undefined;
  placesFaults: ReadonlyMap<string, string>;
}

/** What the service said of a group when it was sent. What was changed since is not spoken of any more. */
export function faultsOf(error: Error | undefined, sent: Draft | undefined, group: Group): GroupFaults {
  const i = sent?.groups.findIndex(({ key }) => key === group.key) ?? -1;
  const then = sent?.groups[i];
  const of = (field: keyof Group, name: string) =>
    then !== undefined && then[field] === group[field] ? fieldErrorOf(error, "emulators", i, name) : undefined;
  const placesFaults = (then?.places ?? []).flatMap((place, j) => {
    const fault = group.places.includes(place) ? fieldErrorOf(error, "emulators", i, "locations", j) : undefined;
    return fault === undefined ? [] : [[place, fault] as const];
  });
  return {
    accessPoints: of("accessPoints", "num_access_points"),
    devices: of("devices", "num_devices"),
    duration: of("duration", "duration"),
    places: placesFaults.map(([place, fault]) => `${place}: ${fault}`).join("; ") || of("places", "locations"),
    placesFaults: new Map(placesFaults),
  };
}
