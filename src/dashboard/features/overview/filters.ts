import type { AccessPointState } from "../../../schemas/overview.ts";
import { type AccessPointCondition, conditionOf } from "../../components/badges.tsx";

/** Which access points are shown. The address contains the filters, so that people can bookmark and share them. */
export interface Filters {
  /** Chooses access points by their labels. The service applies it, the page the others. */
  selector: string;
  type: string | undefined;
  state: AccessPointCondition | undefined;
  /** Matches any part of a name. */
  text: string;
}

export const CONDITIONS: readonly AccessPointCondition[] = ["online", "offline", "new"];
/** Always listed, in this order, before other technologies. */
const COMMON_TECHNOLOGIES = ["5G", "WiFi", "LiFi"];
/** Access points report their technology as free text, so there can be any number of values. */
const MAX_TECHNOLOGIES = 8;

/** Returns the name of a technology for people. Some access points do not report one. */
export const technologyName = (type: string | null): string => type ?? "Other";

export function filtersIn(query: URLSearchParams): Filters {
  const state = query.get("state");
  return {
    selector: query.get("selector") ?? "",
    type: query.get("type") || undefined,
    state: CONDITIONS.find((condition) => condition === state),
    text: query.get("text") ?? "",
  };
}

export const queryOf = ({ selector, type, state, text }: Filters): Record<string, string> => ({
  selector,
  type: type ?? "",
  state: state ?? "",
  text,
});

export function filtered(accessPoints: readonly AccessPointState[], { type, state, text }: Omit<Filters, "selector">) {
  const searched = text.trim().toLowerCase();
  return accessPoints.filter(
    (accessPoint) =>
      (type === undefined || technologyName(accessPoint.access_point_type) === type) &&
      (state === undefined || conditionOf(accessPoint) === state) &&
      (searched === "" || accessPoint.ap_id.toLowerCase().includes(searched)),
  );
}

export interface Counts {
  all: number;
  conditions: Readonly<Record<AccessPointCondition, number>>;
  /** The common ones, then the most frequent. */
  technologies: readonly (readonly [name: string, count: number])[];
}

/** Counts all access points of the selector, regardless of the other filters. */
export function countsOf(accessPoints: readonly AccessPointState[]): Counts {
  const conditions = { online: 0, offline: 0, new: 0 };
  const common = new Map(COMMON_TECHNOLOGIES.map((name) => [name, 0]));
  const others = new Map<string, number>();
  for (const accessPoint of accessPoints) {
    conditions[conditionOf(accessPoint)] += 1;
    const name = technologyName(accessPoint.access_point_type);
    const counts = common.has(name) ? common : others;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const frequent = [...others].sort(([, one], [, other]) => other - one);
  return {
    all: accessPoints.length,
    conditions,
    technologies: [...common, ...frequent].slice(0, MAX_TECHNOLOGIES),
  };
}
