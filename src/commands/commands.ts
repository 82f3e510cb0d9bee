import type { AgentRow, AgentStore } from "../accounts/agent-store.ts";
import type { RateLimiter } from "../accounts/login/rate-limiter.ts";
import type { Encryptor } from "../auth/encryptor.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeAgent } from "../auth/permissions.ts";
import { commandTopic } from "../broker/topics.ts";
import { isSelected } from "../fleet/selectors.ts";
import { ownerOf } from "../jobs/job-store.ts";
import { Conflict, Invalid, Malformed, NotFound, TooMany } from "../lib/errors.ts";
import { describeError, log } from "../lib/log.ts";
import { type CommandMany, type CommandRequest, MAX_COMMANDED, type ManyQueued } from "../schemas/command.ts";
import { type Queued, queued } from "../schemas/job.ts";
import type { CommandStore, NewCommand } from "./command-store.ts";

/** Commands to agents. The answer of each comes over its job's stream. */
export interface Commands {
  send(actor: Actor, request: CommandRequest): Promise<Queued>;
  /** The same command to many: those that are named, or all of a kind or in an area. */
  sendMany(actor: Actor, request: CommandMany): Promise<ManyQueued>;
}

export interface CommandsOptions {
  agents: AgentStore;
  store: CommandStore;
  attempts: Pick<RateLimiter, "take">;
  encryptor: Encryptor;
  /** Tells whoever empties the outbox that there is something in it. Does not fail. */
  nudge(): Promise<void>;
  now?: () => number;
}

/** Of two commands within this time the first one wins: they may contradict each other. */
const PAUSE_MS = 10_000;
const ANSWERED_WITHIN_MS = 60_000;

const BUSY = "The agent was sent another command within the last 10 seconds";
const UNKNOWN = "The agent does not know this command";

/** Refusals in the audit trail: no caller can fill it with commands that go nowhere. */
const MAX_REFUSALS_PER_MINUTE = 60;
const MAX_REFUSED_NAMES = 20;

export function createCommands(options: CommandsOptions): Commands {
  const { agents, store, attempts, encryptor, nudge, now = Date.now } = options;

  const noteRefusal = async (actor: Actor, object: string, detail: Record<string, unknown>): Promise<void> => {
    try {
      await attempts.take(`refused command:${actor.id}`, MAX_REFUSALS_PER_MINUTE);
      await store.noteRefusal(object, { ...detail, outcome: "refused" }, actor);
    } catch (error) {
      if (error instanceof TooMany) return;
      // The commands of the same request that were queued stay so: the caller must learn of them.
      log.warn("refused command not recorded", { request_id: actor.requestId, error: describeError(error) });
    }
  };

  /** Which of the agents it goes to, and under which job number. */
  const dispatch = async (
    actor: Actor,
    command: string,
    to: readonly { apId: string }[],
  ): Promise<Map<string, string>> => {
    const createdMs = now();
    const expiresMs = createdMs + ANSWERED_WITHIN_MS;
    const prepare = async ({ apId }: { apId: string }): Promise<NewCommand> => {
      const jobNumber = crypto.randomUUID();
      const message = {
        job_number: jobNumber,
        command,
        issued_at: new Date(createdMs).toISOString(),
        expires_at: new Date(expiresMs).toISOString(),
      };
      return {
        ...ownerOf(actor),
        jobNumber,
        apId,
        topic: commandTopic(apId),
        payload: await encryptor.seal(JSON.stringify(message), jobNumber),
        detail: command,
      };
    };
    const commands = await Promise.all(to.map(prepare));
    const noted = await store.insert(commands, { createdMs, expiresMs, pauseMs: PAUSE_MS }, actor);
    if (noted.size > 0) await nudge();
    return new Map(
      commands.filter(({ jobNumber }) => noted.has(jobNumber)).map(({ apId, jobNumber }) => [apId, jobNumber]),
    );
  };

  return {
    async send(actor, { agent_id: apId, command }) {
      authorizeAgent(actor, "commands.send", apId);
      const agent = await agents.find(apId);
      if (agent === undefined) throw new NotFound("Agent");
      if (!knows(agent, command)) {
        await noteRefusal(actor, `agent:${apId}`, { command, reason: UNKNOWN });
        throw new Malformed(UNKNOWN);
      }
      const jobNumber = (await dispatch(actor, command, [agent])).get(apId);
      if (jobNumber !== undefined) return queued(jobNumber);
      await noteRefusal(actor, `agent:${apId}`, { command, reason: BUSY });
      const winner = await store.last(apId, actor);
      const which = winner !== undefined && actor.kind === "admin" ? ` (job ${winner.jobNumber})` : "";
      const waitMs = (winner?.createdMs ?? 0) + PAUSE_MS - now();
      throw new Conflict(`${BUSY}${which}`, Math.max(1, Math.ceil(waitMs / 1000)));
    },

    async sendMany(actor, { command, agents: selection }) {
      authorize(actor, "commands.send_many");
      const candidates = await agents.commandables(namesOf(command), selection.ap_ids ?? actor.apIds);
      const allowed = candidates.filter(({ apId }) => actor.apIds?.includes(apId) ?? true);
      const selected = allowed.filter((agent) => isSelected(agent, selection));
      if (selected.length > MAX_COMMANDED) {
        const msg = `Value error, the selection has ${selected.length} agents; at most ${MAX_COMMANDED} can be sent a command at once`;
        throw new Invalid([{ loc: ["body", "agents"], msg, type: "value_error" }]);
      }
      const able = selected.filter(({ knows }) => knows);
      const jobs = await dispatch(actor, command, able);
      const refused = [
        ...selected.filter(({ knows }) => !knows).map(({ apId }) => ({ ap_id: apId, detail: UNKNOWN })),
        ...able.filter(({ apId }) => !jobs.has(apId)).map(({ apId }) => ({ ap_id: apId, detail: BUSY })),
        ...missing(selection.ap_ids, allowed).map((apId) => ({ ap_id: apId, detail: "Agent not found" })),
      ];
      if (refused.length > 0) {
        const some = refused.slice(0, MAX_REFUSED_NAMES).map(({ ap_id, detail: reason }) => ({ ap_id, reason }));
        await noteRefusal(actor, "agents", { command, agents: refused.length, refused: some });
      }
      return {
        status: "queued",
        jobs: [...jobs].map(([apId, jobNumber]) => {
          const { job_number, websocket } = queued(jobNumber);
          return { ap_id: apId, job_number, websocket };
        }),
        refused,
      };
    },
  };
}

/** Under which names an agent may know a command: it may have arguments behind its name. */
const namesOf = (command: string): string[] => [command, command.split(" ")[0] ?? command];

/** If an agent says which commands it knows, it knows no others. */
function knows({ configuration: { commands } }: AgentRow, command: string): boolean {
  return !Array.isArray(commands) || namesOf(command).some((name) => commands.includes(name));
}

function missing(apIds: readonly string[] | undefined, found: readonly { apId: string }[]): string[] {
  const there = new Set(found.map(({ apId }) => apId));
  return [...new Set(apIds)].filter((apId) => !there.has(apId));
}
