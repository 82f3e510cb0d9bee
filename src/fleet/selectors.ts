import type { AgentOutline } from "../accounts/agents/agent-lists.ts";
import type { GroupStore } from "../accounts/group-store.ts";
import type { Actor } from "../auth/identity.ts";
import { distanceM } from "../geo/coordinates.ts";
import { Invalid } from "../lib/errors.ts";
import { groupsIn, type Selector, type SelectorTerms } from "../lib/selectors.ts";
import type { AgentSelection } from "../schemas/command.ts";
import type { VisibleGroups } from "./visible-groups.ts";

/** Resolves the selectors of requests. */
export interface Selectors {
  /**
   * Replaces references to groups. Throws `Invalid` if the caller sees no such group.
   *
   * @param at where the request has the selector. Default: the query parameter `selector`
   */
  resolve(actor: Actor, terms: SelectorTerms | undefined, at?: SelectorPlace): Promise<Selector>;
}

export interface SelectorPlace {
  place: Invalid["place"];
  loc: readonly string[];
}

const IN_QUERY: SelectorPlace = { place: "query", loc: ["selector"] };

export function createSelectors(groups: Pick<GroupStore, "expand">, visibleGroups: VisibleGroups): Selectors {
  return {
    async resolve(actor, terms = [], { place, loc } = IN_QUERY) {
      const names = groupsIn(terms);
      const isVisible = names.length === 0 ? () => true : await visibleGroups(actor);
      const selector = names.every(isVisible) ? await groups.expand(terms) : undefined;
      if (selector === undefined) {
        const msg = "Value error, the selector refers to a group that does not exist";
        throw new Invalid([{ loc: [...loc], msg, type: "unknown_group" }], place);
      }
      return selector;
    },
  };
}

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
