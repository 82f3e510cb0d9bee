import * as z from "zod";
import { parseSelector, SelectorError } from "../../lib/selectors.ts";
import { customIssue, Page } from "../primitives.ts";

const DESCRIPTION =
  "Chooses agents by their labels, in the syntax of Kubernetes: `site=uk/bristol/*,technology in (LiFi,WiFi),!retired`. A final `*` " +
  "stands for any text. `@name` stands for the selector of that group. Empty: all agents.";

/** A selector, parsed. A syntax error names its position. */
export const Selector = z
  .string()
  .transform((text, context) => {
    try {
      return parseSelector(text);
    } catch (error) {
      if (!(error instanceof SelectorError)) throw error;
      context.addIssue({ ...customIssue("selector_syntax", `Value error, ${error.message}`), input: text });
      return z.NEVER;
    }
  })
  .meta({ description: DESCRIPTION });

/** A selector as text, checked. For selectors that are stored. */
export const SelectorText = z
  .string()
  .superRefine((text, context) => {
    const parsed = Selector.safeParse(text);
    for (const { message } of parsed.error?.issues ?? []) context.addIssue(customIssue("selector_syntax", message));
  })
  .meta({ description: DESCRIPTION });

/** A page of the agents that a selector selects. */
export const SelectedPage = Page.extend({ selector: Selector.optional() });
export const SelectorQuery = z.object({ selector: Selector.optional() });
