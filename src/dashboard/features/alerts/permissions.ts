import type { Labels } from "../../../schemas/fleet/selector-syntax.ts";
import { listGroups } from "../../api/fleet-calls.ts";
import { may, session } from "../../app/session.ts";
import { useLoaded } from "../../lib/load.ts";
import { mayOperate, useOwnGrants } from "../../selectors/own-grants.ts";

/** What the signed-in user may do with alerts. The service decides; the page hides what would be rejected. */

export const mayChangeRules = (): boolean => (session.value?.isAdministrator ?? false) && may("agents:manage");

/** Returns a function that returns whether the user may acknowledge and silence an alert with these labels. */
export function useMayOperate(): (labels: Labels) => boolean {
  const grants = useOwnGrants();
  const isLimited = grants !== undefined && grants !== null;
  const groups = useLoaded(async (signal) => (isLimited ? await listGroups(signal) : []), [isLimited]).data ?? [];
  const username = session.value?.username ?? "";
  return (labels) => may("commands:send") && grants !== undefined && mayOperate(grants, labels, groups, username);
}
