import type { AccessPointState } from "../../schemas/fleet/overview.ts";
import type { JobState } from "../../schemas/job.ts";
import { own } from "../lib/format.ts";

/** Small labels and bars with the same meaning on every page. None of them relies on colour alone. */

/** The technologies with a colour in the style sheet. */
const TECHNOLOGIES: Record<string, string> = { "5G": "5g", WiFi: "wifi", LiFi: "lifi" };

/** Returns the name of a technology's colour in the style sheet. */
export const technologyColour = (type: string | null): string =>
  `technology-${own(TECHNOLOGIES, type ?? "") ?? "other"}`;

/** Returns the first letter of a technology's name, or O for other if it is unknown. */
export const technologyLetter = (type: string | null): string => (type?.[0] ?? "O").toUpperCase();

export function TechnologyBadge({ type }: { type: string | null }) {
  return <span class={`badge ${technologyColour(type)}`}>{type ?? "Other"}</span>;
}

type Presence = Pick<AccessPointState, "online" | "last_seen" | "last_seen_unknown">;
export type AccessPointCondition = "online" | "offline" | "new";

/** Returns the condition of an access point: one that has never reported is `new`, not `offline`. */
export const conditionOf = ({ online, last_seen, last_seen_unknown }: Presence): AccessPointCondition => {
  if (online) return "online";
  return last_seen === null && last_seen_unknown === undefined ? "new" : "offline";
};

export function ConditionMark({ condition }: { condition: AccessPointCondition }) {
  return <span class={`condition ${condition}`}>{condition}</span>;
}

export function JobStateMark({ state }: { state: JobState }) {
  return <span class={`badge job-${state}`}>{state}</span>;
}

/** Shows a share from 0 to 1 as a bar. Hidden from screen readers: the number must stand next to it. */
export function Bar({ share }: { share: number }) {
  return (
    <span class="bar" aria-hidden="true">
      <span style={{ width: `${Math.min(1, Math.max(0, share)) * 100}%` }} />
    </span>
  );
}
