import { LABEL_VALUE, type Labels, MAX_LABEL_LENGTH } from "../lib/selectors.ts";
import { isEmulated } from "../schemas/agent.ts";

/** What the labels of an agent are made of. */
interface LabelSource {
  apId: string;
  /** Labels that callers have set. */
  customLabels: Labels;
  /** `configuration.access_point_type`, of any type. */
  accessPointType: unknown;
  /** Name of the account that emulates the agent, in the form of a label value. */
  owner: string | null;
}

/** Returns all labels of an agent. Must give the same result as the triggers in drizzle/0007_labels.sql. */
export function labelsOf({ apId, customLabels, accessPointType, owner }: LabelSource): Labels {
  return {
    ...customLabels,
    emulated: String(isEmulated(apId)),
    ...(owner !== null && { owner }),
    ...(isLabelValue(accessPointType) && { technology: accessPointType }),
  };
}

const isLabelValue = (value: unknown): value is string =>
  typeof value === "string" && value.length <= MAX_LABEL_LENGTH && LABEL_VALUE.test(value);

/** Returns an account's name in the form of a label value. */
export const ownerLabel = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9._/@:+-]/g, "_").slice(0, MAX_LABEL_LENGTH);
