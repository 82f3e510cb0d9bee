import type { JobState } from "../../schemas/job.ts";
import { own } from "../lib/own.ts";

/** Small marks that mean the same everywhere. Never by colour alone. */

/** The technologies that have a colour of their own. */
const TECHNOLOGIES: Record<string, string> = { "5G": "5g", WiFi: "wifi", LiFi: "lifi" };

/** The name of a technology's colour in the style sheet. */
export const technologyColour = (type: string | null): string =>
  `technology-${own(TECHNOLOGIES, type ?? "") ?? "other"}`;

export function TechnologyBadge({ type }: { type: string | null }) {
  return <span class={`badge ${technologyColour(type)}`}>{type ?? "Other"}</span>;
}

export type AccessPointCondition = "online" | "offline" | "new";

/** An access point that was never heard of is new rather than offline. */
export const conditionOf = ({ online, last_seen }: { online: boolean; last_seen: string | null }) =>
  (online ? "online" : last_seen === null ? "new" : "offline") satisfies AccessPointCondition;

export function ConditionMark({ condition }: { condition: AccessPointCondition }) {
  return <span class={`condition ${condition}`}>{condition}</span>;
}

export function JobStateMark({ state }: { state: JobState }) {
  return <span class={`badge job-${state}`}>{state}</span>;
}
