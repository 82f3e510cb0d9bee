import * as z from "zod";
import type { AgentStore } from "../accounts/agent-store.ts";
import { fitting, type Producer } from "./work.ts";

/** By name, not by number: of those that are left, none is skipped where others are deleted meanwhile. */
const Cursor = z.object({ after: z.string().optional() }).default({});

/** Whole configurations are in memory at a time; each may be large. */
const PAGE = 100;

/** The details of all agents, in pages. */
export function produceAgentDetails(agents: AgentStore, apIds: readonly string[] | undefined): Producer {
  return {
    async next(cursor) {
      const { after } = Cursor.parse(cursor);
      const page = await agents.list({ limit: PAGE, offset: 0, after }, apIds);
      const rows = page.map(({ id, apId, configuration, onboard }) =>
        JSON.stringify({ id, ap_id: apId, configuration, onboard }),
      );
      const count = fitting(rows);
      const isLast = count === rows.length && page.length < PAGE;
      return { rows: rows.slice(0, count), cursor: { after: page[count - 1]?.apId ?? after }, isLast };
    },
  };
}
