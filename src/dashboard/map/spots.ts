import type { AccessPointState } from "../../schemas/overview.ts";
import { type AccessPointCondition, conditionOf } from "../components/badges.tsx";
import { project, type WorldPoint } from "./projection.ts";

/** An access point with a place on the map. */
export interface Spot extends WorldPoint {
  accessPoint: AccessPointState;
  condition: AccessPointCondition;
}

/** Where access points are; those that do not say are left out. */
export function spotsOf(accessPoints: readonly AccessPointState[]): Spot[] {
  const spots: Spot[] = [];
  for (const accessPoint of accessPoints) {
    const { latitude, longitude } = accessPoint;
    if (latitude === null || longitude === null) continue;
    spots.push({ ...project(latitude, longitude), accessPoint, condition: conditionOf(accessPoint) });
  }
  return spots;
}
