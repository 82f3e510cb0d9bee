import type { AgentOutline } from "../accounts/agent-lists.ts";
import type { AgentSelection } from "../schemas/command.ts";

/** Whether an agent is of the kind and in the area that were asked for. */
export function isSelected(
  { accessPointType, latitude, longitude }: Pick<AgentOutline, "accessPointType" | "latitude" | "longitude">,
  { access_point_type, area }: AgentSelection,
): boolean {
  if (access_point_type !== undefined && accessPointType !== access_point_type) return false;
  if (area === undefined) return true;
  return latitude !== null && longitude !== null && distanceM({ latitude, longitude }, area) <= area.radius_m;
}

interface Position {
  latitude: number;
  longitude: number;
}

const EARTH_RADIUS_M = 6_371_009;
const radians = (degrees: number): number => (degrees * Math.PI) / 180;

/** Along the surface, by the haversine formula. */
export function distanceM(a: Position, b: Position): number {
  const [south, north] = [radians(a.latitude), radians(b.latitude)];
  const halfHeight = Math.sin((north - south) / 2);
  const halfWidth = Math.sin(radians(b.longitude - a.longitude) / 2);
  const chord = halfHeight ** 2 + Math.cos(south) * Math.cos(north) * halfWidth ** 2;
  return 2 * EARTH_RADIUS_M * Math.asin(Math.min(1, Math.sqrt(chord)));
}
