import * as z from "zod";
import type { AgentSelection } from "../schemas/command.ts";

const Located = z.object({ geolocation: z.object({ latitude: z.number(), longitude: z.number() }) });

/** Whether an agent with this configuration is of the kind and in the area that were asked for. */
export function isSelected(
  configuration: Record<string, unknown>,
  { access_point_type, area }: AgentSelection,
): boolean {
  if (access_point_type !== undefined && configuration.access_point_type !== access_point_type) return false;
  if (area === undefined) return true;
  const located = Located.safeParse(configuration);
  return located.success && distanceM(located.data.geolocation, area) <= area.radius_m;
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
