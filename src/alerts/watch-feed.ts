import type { AgentLists, WatchedAgent } from "../accounts/agents/agent-lists.ts";
import { type AuditFeed, LABELLED_AGENTS } from "../accounts/audit-feed.ts";
import { type EnabledRule, RULE_OBJECT, type RuleStore } from "./rule-store.ts";

/** Reports to shards which rules and agents have changed. */
export interface WatchFeed {
  /**
   * Returns what has changed since a mark, and the new mark. Without a mark, returns everything.
   *
   * @param unknown agents to look up as well
   */
  since(mark: number | undefined, unknown?: readonly string[]): Promise<WatchChanges>;
}

export interface WatchChanges {
  mark: number;
  /** All enabled rules. Undefined if none has changed. */
  rules?: EnabledRule[] | undefined;
  /** Undefined if no agent has changed. */
  agents?: AgentChanges | undefined;
}

export interface AgentChanges {
  found: WatchedAgent[];
  /** The agents that were looked up: those that are not found do not exist. Undefined: all agents. */
  names?: readonly string[] | undefined;
}

const AGENT_OBJECT = "agent:";
const GROUP_OBJECT = "group:";
/** One entry of the audit trail about a job stands for all agents that it creates or deletes. */
const JOB_OBJECT = "job:";

/** Agents that are looked up by name. If there are more, all agents are loaded. */
const MAX_NAMES = 2_000;

/** The audit trail has an entry for every change, so one query by its key finds out whether there is any. */
export function createWatchFeed(
  auditFeed: AuditFeed,
  rules: Pick<RuleStore, "enabledRules">,
  agents: Pick<AgentLists, "watched">,
): WatchFeed {
  const load = async (
    mark: number,
    hasRules: boolean,
    names: readonly string[] | undefined,
  ): Promise<WatchChanges> => ({
    mark,
    ...(hasRules && { rules: await rules.enabledRules() }),
    ...(names?.length !== 0 && { agents: { found: await agents.watched({ apIds: names }), names } }),
  });

  return {
    async since(mark, unknown = []) {
      const { mark: newMark, changed } = await auditFeed.since(mark);
      if (mark === undefined || changed === "everything") return await load(newMark, true, undefined);
      const objects = [...changed];
      const hasRules = objects.some((object) => object.startsWith(RULE_OBJECT) || object.startsWith(GROUP_OBJECT));
      const areMany = objects.some((object) => object === LABELLED_AGENTS || object.startsWith(JOB_OBJECT));
      const names = objects
        .filter((object) => object.startsWith(AGENT_OBJECT))
        .map((object) => object.slice(AGENT_OBJECT.length));
      const all = [...new Set([...names, ...unknown])];
      return await load(newMark, hasRules, areMany || all.length > MAX_NAMES ? undefined : all);
    },
  };
}
