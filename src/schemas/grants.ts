import * as z from "zod";
import { GRANT_ROLES } from "../auth/agent-scope.ts";
import { SelectorText } from "./selector.ts";

const MAX_GRANTS = 100;

const Grant = z
  .object({
    role: z
      .enum(GRANT_ROLES)
      .describe(
        "`viewer` reads; `operator` also sends commands and runs emulations; `manager` also creates, labels, updates and deletes agents.",
      ),
    selector: SelectorText.describe(
      "The agents that the role applies to, as `site=uk/*` or `@group`. Empty: all agents.",
    ),
  })
  .meta({ id: "Grant" });

/** The grants of a user or an app. */
export const Grants = z
  .object({
    grants: z
      .array(Grant)
      .max(MAX_GRANTS)
      .nullable()
      .describe("Null: operator of all agents. An empty list: only the agents that the account emulates itself."),
  })
  .meta({ id: "Grants" });
export type Grants = z.output<typeof Grants>;
