import * as z from "zod";
import type { AgentFilter } from "../../accounts/agent-conditions.ts";
import type { AgentStore } from "../../accounts/agent-store.ts";
import { encodeJson } from "../../lib/encoding.ts";
import { countThatFits, type Producer } from "./producer.ts";

/** Pages by name, not by offset: agents deleted between two pages must not cause others to be skipped. */
const Cursor = z.object({ after: z.string().optional() }).default({});

/** Produces the details of the agents of a filter. */
export function produceAgentDetails(agents: AgentStore, filter: AgentFilter): Producer {
  return {
    async next(cursor) {
      const { after } = Cursor.parse(cursor);
      const page = await agents.page({ after, filter });
      const rows = page.rows.map(({ id, apId, configuration, onboard }) =>
        encodeJson({ id, ap_id: apId, configuration, onboard }),
      );
      const count = countThatFits(rows);
      const isLast = count === rows.length && page.isLast;
      return { rows: rows.slice(0, count), cursor: { after: page.rows[count - 1]?.apId ?? after }, isLast };
    },
  };
}
