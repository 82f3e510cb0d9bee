import type { SilenceRow, SilenceStore } from "../alerts/silence-store.ts";
import { isUnlimited } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { type Action, agentScopeOf, authorize, visibleAgents } from "../auth/permissions.ts";
import type { Selectors } from "../fleet/selectors.ts";
import { Invalid, NotAllowed, NotFound } from "../lib/errors.ts";
import { parseSelector } from "../lib/selectors.ts";
import { MAX_SILENCE_DAYS, type Silence, type SilenceCreate } from "../schemas/alerts/alert.ts";

/**
 * Silences hold back the notifications of alerts. A silence applies to agents that its author may operate, so authors with fewer agents
 * see and end only their own silences: the selectors of others may name sites that they do not see.
 */
export interface Silences {
  /** Returns the silences that have not ended. */
  list(actor: Actor): Promise<Silence[]>;
  create(actor: Actor, silence: SilenceCreate): Promise<Silence>;
  /** Ends a silence. Alerts that it held back and that still fire notify now. */
  delete(actor: Actor, id: string): Promise<void>;
}

export interface SilencesOptions {
  store: SilenceStore;
  selectors: Selectors;
  /** Writes the events of alerts that no silence holds back any more. */
  release(): Promise<unknown>;
  now?: () => number;
}

const DAY_MS = 86_400_000;

export function createSilences({ store, selectors, release, now = Date.now }: SilencesOptions): Silences {
  const canSee = (actor: Actor, { authorId }: SilenceRow): boolean =>
    isUnlimited(visibleAgents(actor)) || authorId === actor.id;
  /** Throws `NotAllowed` if the caller sees agents by its grants and may operate none of them. */
  const requireOperator = (actor: Actor, action: Action): void => {
    authorize(actor, action);
    const isOperator = agentScopeOf(actor, action).selectors?.length !== 0;
    if (!isOperator && visibleAgents(actor).selectors?.length !== 0) throw new NotAllowed();
  };

  return {
    async list(actor) {
      authorize(actor, "silences.list");
      return (await store.active(now())).filter((silence) => canSee(actor, silence)).map(toResponse);
    },

    async create(actor, { selector, until, reason }) {
      requireOperator(actor, "silences.create");
      await selectors.resolve(actor, parseSelector(selector), { place: "body", loc: ["selector"] });
      const end = new Date(until);
      const aheadMs = end.getTime() - now();
      if (aheadMs <= 0 || aheadMs > MAX_SILENCE_DAYS * DAY_MS) {
        const msg = `Value error, a silence must end in the future, within ${MAX_SILENCE_DAYS} days`;
        throw new Invalid([{ loc: ["until"], msg, type: "value_error" }]);
      }
      return toResponse(await store.insert({ selector, reason, until: end }, actor));
    },

    async delete(actor, id) {
      requireOperator(actor, "silences.delete");
      const silence = await store.find(id);
      if (silence === undefined || !canSee(actor, silence)) throw new NotFound("Silence");
      await store.delete(silence, actor);
      await release();
    },
  };
}

const toResponse = ({ id, selector, reason, author, createdAt, until }: SilenceRow): Silence => ({
  id,
  selector,
  reason,
  author,
  created_at: createdAt.toISOString(),
  until: until.toISOString(),
});
