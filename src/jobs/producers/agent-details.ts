import * as z from "zod";
import type { AgentStore } from "../../accounts/agent-store.ts";
import { countThatFits, type Producer } from "./producer.ts";

/** By name, not by number: of those that are left, none is skipped where others are deleted meanwhile. */
const Cursor = z.object({ after: z.string().optional() }).default({});

/** The details of all agents, in pages. */
export function produceAgentDetails(agents: AgentStore, apIds: readonly string[] | undefined): Producer {
  return {
    async next(cursor) {
      const { after } = Cursor.parse(cursor);
      const page = await agents.page({ after, only: apIds });
      const rows = page.rows.map(({ id, apId, configuration, onboard }) =>
        JSON.stringify({ id, ap_id: apId, configuration, onboard }),
      );
      const count = countThatFits(rows);
      const isLast = count === rows.length && page.isLast;
      return { rows: rows.slice(0, count), cursor: { after: page.rows[count - 1]?.apId ?? after }, isLast };
    },
  };
}
