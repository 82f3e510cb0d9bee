import type { AgentRow, AgentStore } from "../accounts/agents/agent-store.ts";
import type { RateLimiter } from "../accounts/login/rate-limiter.ts";
import type { Encryptor } from "../auth/encryptor.ts";
import type { Actor } from "../auth/identity.ts";
import { agentScopeOf, authorize, authorizeAgent, authorizeFoundAgent, visibleAgents } from "../auth/permissions.ts";
import { commandTopic } from "../broker/topics.ts";
import { isSelected } from "../fleet/selectors.ts";
import { ownerOf } from "../jobs/job-store.ts";
import { Conflict, Invalid, Malformed, TooMany } from "../lib/errors.ts";
import { describeError, log } from "../lib/log.ts";
import type { Selector } from "../lib/selectors.ts";
import {
  type CommandRequest,
  type CommandsQueued,
  type CommandsRequest,
  MAX_COMMAND_TARGETS,
} from "../schemas/command.ts";
import { type Queued, queued } from "../schemas/job.ts";
import type { CommandStore, NewCommand } from "./command-store.ts";

/** Sends commands to agents. Each result arrives on the stream of the command's job. */
export interface Commands {
  send(actor: Actor, request: CommandRequest): Promise<Queued>;
  /** Sends one command to several agents: named ones, or all of a selector, of a type or in an area. */
  sendMany(actor: Actor, request: CommandsRequest, selector?: Selector): Promise<CommandsQueued>;
}

export interface CommandsOptions {
  agents: AgentStore;
  store: CommandStore;
  rateLimiter: Pick<RateLimiter, "take">;
  encryptor: Encryptor;
  /** Tells the publisher that the outbox has new messages. Does not throw. */
  wakePublisher(): Promise<void>;
  now?: () => number;
}

/** Of two commands within this time, only the first is sent: they may contradict each other. */
const MIN_INTERVAL_MS = 10_000;
const RESULT_TIMEOUT_MS = 60_000;

const BUSY = "The agent was sent another command within the last 10 seconds";
const UNKNOWN_COMMAND = "The agent does not know this command";
const NOT_ALLOWED = "Not enough permissions";

/** Limits the refusals in the audit trail, so that a caller cannot flood it with refused commands. */
const MAX_REFUSALS_PER_MINUTE = 60;
const MAX_REFUSED_NAMES = 20;

export function createCommands(options: CommandsOptions): Commands {
  const { agents, store, rateLimiter, encryptor, wakePublisher, now = Date.now } = options;

  const recordRefusal = async (actor: Actor, object: string, detail: Record<string, unknown>): Promise<void> => {
    try {
      await rateLimiter.take(`refused command:${actor.id}`, MAX_REFUSALS_PER_MINUTE);
      await store.recordRefusal(object, { ...detail, outcome: "refused" }, actor);
    } catch (error) {
      if (error instanceof TooMany) return;
      // Do not throw: the caller must get the jobs that this request has already queued.
      log.warn("refused command not recorded", { request_id: actor.requestId, error: describeError(error) });
    }
  };

  /** Queues a command and returns the job number of each agent that it is sent to. */
  const dispatch = async (
    actor: Actor,
    command: string,
    targets: readonly { apId: string }[],
  ): Promise<Map<string, string>> => {
    const createdMs = now();
    const expiresMs = createdMs + RESULT_TIMEOUT_MS;
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
    const commands = await Promise.all(targets.map(prepare));
    const inserted = await store.insert(commands, { createdMs, expiresMs, minIntervalMs: MIN_INTERVAL_MS }, actor);
    if (inserted.size > 0) await wakePublisher();
    return new Map(
      commands.filter(({ jobNumber }) => inserted.has(jobNumber)).map(({ apId, jobNumber }) => [apId, jobNumber]),
    );
  };

  /**
   * Returns a refusal for each name that is not among the found agents, unless it is only not selected. Names that the caller may not see
   * count as unknown.
   */
  const notFound = async (actor: Actor, apIds: readonly string[] = [], found: readonly { apId: string }[]) => {
    const names = new Set(apIds);
    for (const { apId } of found) names.delete(apId);
    if (names.size === 0) return [];
    const apIdsLeft = [...names];
    const scope = agentScopeOf(actor, "commands.send_many");
    for (const apId of await agents.names({ scope, apIds: apIdsLeft })) names.delete(apId);
    const visible = new Set(await agents.names({ scope: visibleAgents(actor), apIds: apIdsLeft }));
    return [...names].map((apId) => ({ ap_id: apId, detail: visible.has(apId) ? NOT_ALLOWED : "Agent not found" }));
  };

  return {
    async send(actor, { agent_id: apId, command }) {
      authorizeAgent(actor, "commands.send", apId);
      const agent = await agents.find(apId);
      authorizeFoundAgent(actor, "commands.send", agent);
      if (!supports(agent, command)) {
        await recordRefusal(actor, `agent:${apId}`, { command, reason: UNKNOWN_COMMAND });
        throw new Malformed(UNKNOWN_COMMAND);
      }
      const jobNumber = (await dispatch(actor, command, [agent])).get(apId);
      if (jobNumber !== undefined) return queued(jobNumber);
      await recordRefusal(actor, `agent:${apId}`, { command, reason: BUSY });
      const last = await store.last(apId, actor);
      const job = last !== undefined && actor.kind === "admin" ? ` (job ${last.jobNumber})` : "";
      const waitMs = (last?.createdMs ?? 0) + MIN_INTERVAL_MS - now();
      throw new Conflict(`${BUSY}${job}`, Math.max(1, Math.ceil(waitMs / 1000)));
    },

    async sendMany(actor, { command, agents: selection }, selector = []) {
      authorize(actor, "commands.send_many");
      const scope = agentScopeOf(actor, "commands.send_many");
      const found = await agents.commandTargets(namesOf(command), { scope, selector, apIds: selection.ap_ids });
      const selected = found.filter((agent) => isSelected(agent, selection));
      if (selected.length > MAX_COMMAND_TARGETS) {
        const msg = `Value error, the selection has ${selected.length} agents; at most ${MAX_COMMAND_TARGETS} can be sent a command at once`;
        throw new Invalid([{ loc: ["agents"], msg, type: "value_error" }]);
      }
      const supporting = selected.filter(({ supportsCommand }) => supportsCommand);
      const jobs = await dispatch(actor, command, supporting);
      const refused = [
        ...selected
          .filter(({ supportsCommand }) => !supportsCommand)
          .map(({ apId }) => ({ ap_id: apId, detail: UNKNOWN_COMMAND })),
        ...supporting.filter(({ apId }) => !jobs.has(apId)).map(({ apId }) => ({ ap_id: apId, detail: BUSY })),
        ...(await notFound(actor, selection.ap_ids, found)),
      ];
      if (refused.length > 0) {
        const some = refused.slice(0, MAX_REFUSED_NAMES).map(({ ap_id, detail: reason }) => ({ ap_id, reason }));
        await recordRefusal(actor, "agents", { command, agents: refused.length, refused: some });
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

/** Returns the names by which an agent may list a command: the whole text, or the text without its arguments. */
const namesOf = (command: string): string[] => [command, command.split(" ")[0] ?? command];

/** Returns whether an agent supports a command. An agent without a `commands` list supports all commands. */
function supports({ configuration: { commands } }: AgentRow, command: string): boolean {
  return !Array.isArray(commands) || namesOf(command).some((name) => commands.includes(name));
}
