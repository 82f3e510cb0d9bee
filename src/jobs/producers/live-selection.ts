import * as z from "zod";
import type { AgentLists } from "../../accounts/agents/agent-lists.ts";
import type { AccountRef, CurrentScope } from "../../accounts/login/account-scope.ts";
import { sleep } from "../../lib/deadline.ts";
import { encodeJson, type JsonText } from "../../lib/encoding.ts";
import { toIsoTime } from "../../lib/iso-time.ts";
import type { Selector } from "../../lib/selectors.ts";
import type { ShardClient } from "../../telemetry/shard/shard-client.ts";
import type { AgentSample } from "../../telemetry/store/telemetry-store.ts";
import type { Producer, ProducerStep } from "./producer.ts";

/**
 * Produces the new data of all agents that a selector selects and the account sees. Reads the change feeds of the shards only: rows that
 * were committed while the job was suspended, or that a feed had to drop, are left out.
 */

export const MAX_LIVE_AGENTS = 500;

/** Cursors are stored: their field names must not change. The keys are the numbers of the shards. */
const Cursor = z.object({ places: z.record(z.string(), z.object({ epoch: z.string(), seq: z.int() })) });

const POLL_MS = 1_000;
/** Each step is stored, so a step without rows waits for this long. */
const MAX_WAIT_MS = 20_000;
/** An agent that leaves the scope or the selector must be absent within 5 s. */
const SELECTION_MS = 4_000;

export interface LiveSelectionOptions {
  agents: Pick<AgentLists, "names">;
  scopeOf: CurrentScope;
  shards: Pick<ShardClient, "newsOfMany">;
  request: { account: AccountRef; selector: Selector; toMs: number };
  now: () => number;
}

export function produceLiveSelection({ agents, scopeOf, shards, request, now }: LiveSelectionOptions): Producer {
  const { account, selector, toMs } = request;
  let selected: { apIds: string[]; atMs: number } | undefined;

  /** Returns the names of the agents. More than the limit can exist only if some were added later. */
  const selection = async (): Promise<string[]> => {
    const atMs = now();
    if (selected !== undefined && atMs - selected.atMs < SELECTION_MS) return selected.apIds;
    const scope = await scopeOf(account);
    const apIds = scope === undefined ? [] : (await agents.names({ scope, selector })).slice(0, MAX_LIVE_AGENTS);
    selected = { apIds, atMs };
    return apIds;
  };

  let nextPollMs = 0;
  const poll = async (places: z.output<typeof Cursor>["places"]): Promise<ProducerStep> => {
    await sleep(Math.max(0, Math.min(nextPollMs, toMs) - now()));
    const isEnd = now() >= toMs;
    const numbered = Object.entries(places).map(([shard, place]) => [Number(shard), place] as const);
    const page = await shards.newsOfMany(await selection(), new Map(numbered));
    nextPollMs = page.hasMore ? 0 : now() + POLL_MS;
    const cursor = { places: Object.fromEntries(page.places) };
    return { rows: page.samples.flatMap(toRows), cursor, isLast: isEnd && !page.hasMore };
  };

  return {
    async next(cursor) {
      const endMs = now() + MAX_WAIT_MS;
      let step = await poll(cursor === undefined ? {} : Cursor.parse(cursor).places);
      while (cursor !== undefined && step.rows.length === 0 && !step.isLast && now() < endMs)
        step = await poll(Cursor.parse(step.cursor).places);
      return step;
    },
  };
}

function toRows({ apId, tsMs, metrics, texts }: AgentSample): JsonText[] {
  const time = toIsoTime(tsMs);
  return Object.entries({ ...metrics, ...texts }).map(([field, value]) =>
    encodeJson({ ap_id: apId, time, field, value }),
  );
}
