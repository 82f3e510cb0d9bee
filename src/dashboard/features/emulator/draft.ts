import type { AccessPointType, EmulatorSpinupRequest } from "../../../schemas/emulator.ts";
import { fieldErrorOf } from "../../components/form.tsx";
import { type Duration, secondsOf, TEN_MINUTES } from "../../lib/duration.ts";

/** The state of the form. Numbers are texts as typed. */
export interface Draft {
  groups: readonly Group[];
  /** Applies to all groups. If undefined, each group has its own. */
  duration: Duration | undefined;
}

export interface Group {
  /** Identifies the group, also after other groups were removed. */
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
/** The limits of the service. */
export const LIMITS = { groups: 100, accessPoints: 1_000, totalAccessPoints: 10_000, devices: 100_000, places: 1_000 };

/** Complete, so that a new user only has to press the button. */
const FIRST_GROUP: Group = {
  key: 0,
  technology: "LiFi",
  accessPoints: "5",
  devices: "8",
  places: ["Bristol, GB"],
  duration: TEN_MINUTES,
};
export const NEW_DRAFT: Draft = { groups: [FIRST_GROUP], duration: TEN_MINUTES };

/** Adds a copy of the last group with another technology. */
export function withGroup({ groups, duration }: Draft): Draft {
  const last = groups.at(-1) ?? FIRST_GROUP;
  const index = TECHNOLOGIES.findIndex(([technology]) => technology === last.technology);
  const technology = TECHNOLOGIES[(index + 1) % TECHNOLOGIES.length]?.[0] ?? last.technology;
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

export interface GroupErrors {
  accessPoints: string | undefined;
  devices: string | undefined;
  duration: string | undefined;
  /** About the whole field, or about some of its places. */
  places: string | undefined;
  byPlace: ReadonlyMap<string, string>;
}

/** Returns the errors of the last request for a group. Leaves out fields that were changed since. */
export function groupErrors(error: Error | undefined, sent: Draft | undefined, group: Group): GroupErrors {
  const i = sent?.groups.findIndex(({ key }) => key === group.key) ?? -1;
  const sentGroup = sent?.groups[i];
  const errorOf = (field: keyof Group, name: string) =>
    sentGroup !== undefined && sentGroup[field] === group[field]
      ? fieldErrorOf(error, "emulators", i, name)
      : undefined;
  const placeErrors = (sentGroup?.places ?? []).flatMap((place, j) => {
    const fieldError = group.places.includes(place) ? fieldErrorOf(error, "emulators", i, "locations", j) : undefined;
    return fieldError === undefined ? [] : [[place, fieldError] as const];
  });
  return {
    accessPoints: errorOf("accessPoints", "num_access_points"),
    devices: errorOf("devices", "num_devices"),
    duration: errorOf("duration", "duration"),
    places:
      placeErrors.map(([place, fieldError]) => `${place}: ${fieldError}`).join("; ") || errorOf("places", "locations"),
    byPlace: new Map(placeErrors),
  };
}
