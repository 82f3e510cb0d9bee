import * as z from "zod";
import { GROUP_NAME, groupsIn, MAX_LABEL_LENGTH, parseSelector } from "../../lib/selectors.ts";
import { Description } from "../primitives.ts";
import { SelectorText } from "./selector.ts";

/** Groups that can exist at one time. */
export const MAX_GROUPS = 1_000;

/** The name of a group to read. Names that no group can have are not found. */
export const GroupPath = z.object({ name: z.string() });
export const NewGroupPath = z.object({ name: z.string().max(MAX_LABEL_LENGTH).regex(GROUP_NAME) });

export const GroupSave = z
  .object({
    selector: SelectorText.refine((text) => !refersToGroup(text), "a group cannot refer to groups"),
    description: Description.default(""),
  })
  .meta({ id: "GroupSave" });
export type GroupSave = z.output<typeof GroupSave>;

export const Group = z
  .object({ name: z.string(), selector: z.string(), description: z.string() })
  .meta({ id: "Group", description: "A named selector. Other selectors refer to it as `@name`." });
export type Group = z.output<typeof Group>;

/** Returns whether a valid selector has `@name`. The syntax of others is reported already. */
function refersToGroup(text: string): boolean {
  try {
    return groupsIn(parseSelector(text)).length > 0;
  } catch {
    return false;
  }
}
