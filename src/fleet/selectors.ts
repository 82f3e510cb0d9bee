import type { AgentOutline } from "../accounts/agent-lists.ts";
import { distanceM } from "../geo/distance.ts";
import type { AgentSelection } from "../schemas/command.ts";

type SelectableAgent = Pick<AgentOutline, "accessPointType" | "latitude" | "longitude">;

/**
 * Returns whether an agent has the type and is in the area of a selection. An agent without a position is in no area. The names in the
 * selection are matched by the query that finds the agents.
 */
export function isSelected(
  { accessPointType, latitude, longitude }: SelectableAgent,
  { access_point_type, area }: AgentSelection,
): boolean {
  if (access_point_type !== undefined && accessPointType !== access_point_type) return false;
  if (area === undefined) return true;
  return latitude !== null && longitude !== null && distanceM({ latitude, longitude }, area) <= area.radius_m;
}
