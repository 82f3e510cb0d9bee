import type { AccessPointState } from "../../../schemas/overview.ts";
import { type AccessPointCondition, conditionOf } from "../../components/badges.tsx";

/** Which access points are shown. It is in the address, so that it can be kept and passed on. */
export interface Filters {
  type: string | undefined;
  state: AccessPointCondition | undefined;
  /** Part of a name. */
  text: string;
}

export const CONDITIONS: readonly AccessPointCondition[] = ["online", "offline", "new"];
/** Those that everybody expects to see, in this order, before any other. */
const USUAL_TECHNOLOGIES = ["5G", "WiFi", "LiFi"];
/** Access points say themselves what they are; there may be any number of kinds. */
const MAX_TECHNOLOGIES = 8;

/** What people call a technology; some access points do not say. */
export const technologyName = (type: string | null): string => type ?? "Other";

export function filtersIn(query: URLSearchParams): Filters {
  const state = query.get("state");
  return {
    type: query.get("type") || undefined,
    state: CONDITIONS.find((condition) => condition === state),
    text: query.get("text") ?? "",
  };
}

export const queryOf = ({ type, state, text }: Filters): Record<string, string> => ({
  type: type ?? "",
  state: state ?? "",
  text,
});

export function filtered(accessPoints: readonly AccessPointState[], { type, state, text }: Filters) {
  const part = text.trim().toLowerCase();
  return accessPoints.filter(
    (accessPoint) =>
      (type === undefined || technologyName(accessPoint.access_point_type) === type) &&
      (state === undefined || conditionOf(accessPoint) === state) &&
      (part === "" || accessPoint.ap_id.toLowerCase().includes(part)),
  );
}

export interface Counts {
  all: number;
  conditions: Readonly<Record<AccessPointCondition, number>>;
  /** The usual ones, then the most frequent. */
  technologies: readonly (readonly [name: string, count: number])[];
}

/** Of the whole network, whatever is shown of it. */
export function countsOf(accessPoints: readonly AccessPointState[]): Counts {
  const conditions = { online: 0, offline: 0, new: 0 };
  const usual = new Map(USUAL_TECHNOLOGIES.map((name) => [name, 0]));
  const others = new Map<string, number>();
  for (const accessPoint of accessPoints) {
    conditions[conditionOf(accessPoint)] += 1;
    const name = technologyName(accessPoint.access_point_type);
    const counts = usual.has(name) ? usual : others;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const frequent = [...others].sort(([, one], [, other]) => other - one);
  return {
    all: accessPoints.length,
    conditions,
    technologies: [...usual, ...frequent].slice(0, MAX_TECHNOLOGIES),
  };
}
