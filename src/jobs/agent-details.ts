import * as z from "zod";
import type { AgentStore } from "../accounts/agent-store.ts";
import { fitting, type Producer } from "./work.ts";

const Cursor = z.object({ offset: z.int() }).default({ offset: 0 });

/** Whole configurations are in memory at a time; each may be large. */
const PAGE = 100;

/** The details of all agents, in pages. */
export function produceAgentDetails(agents: AgentStore, apIds: readonly string[] | undefined): Producer {
  return {
    async next(cursor) {
      const { offset } = Cursor.parse(cursor);
      const page = await agents.list({ limit: PAGE, offset }, apIds);
      const rows = page.map(({ id, apId, configuration, onboard }) =>
        JSON.stringify({ id, ap_id: apId, configuration, onboard }),
      );
      const count = fitting(rows);
      const isLast = count === rows.length && page.length < PAGE;
      return { rows: rows.slice(0, count), cursor: { offset: offset + count }, isLast };
    },
  };
}
