import type { AgentStore } from "../accounts/agent-store.ts";
import { type Actor, allowOnAgent } from "../auth/permissions.ts";
import { commandTopic } from "../broker/topics.ts";
import { Conflict, Malformed, NotFound } from "../errors.ts";
import { ownerOf } from "../jobs/jobs.ts";
import { describeError, log } from "../log.ts";
import type { CommandRequest } from "../schemas/command.ts";
import type { Queued } from "../schemas/job.ts";
import type { CommandStore } from "./command-store.ts";

/** Commands to agents. The answer comes over the job's stream. */
export interface Commands {
  send(actor: Actor, request: CommandRequest): Promise<Queued>;
}

export interface CommandsOptions {
  agents: AgentStore;
  store: CommandStore;
  /** Tells whoever empties the outbox that there is something in it. */
  nudge(): Promise<void>;
  now?: () => number;
}

/** Of two commands within this time the first one wins: they may contradict each other. */
const PAUSE_MS = 10_000;
const ANSWERED_WITHIN_MS = 60_000;

export function createCommands({ agents, store, nudge, now = Date.now }: CommandsOptions): Commands {
  return {
    async send(actor, { agent_id: apId, command }) {
      allowOnAgent(actor, "commands.send", apId);
      const agent = await agents.find(apId);
      if (agent === undefined) throw new NotFound("Agent");
      refuseUnknown(command, agent.configuration.commands);
      const jobNumber = crypto.randomUUID();
      const createdMs = now();
      const expiresMs = createdMs + ANSWERED_WITHIN_MS;
      const winner = await store.insert(
        {
          jobNumber,
          ...ownerOf(actor),
          apId,
          topic: commandTopic(apId),
          payload: JSON.stringify({
            job_number: jobNumber,
            command,
            issued_at: new Date(createdMs).toISOString(),
            expires_at: new Date(expiresMs).toISOString(),
          }),
          detail: command,
          createdMs,
          expiresMs,
        },
        PAUSE_MS,
      );
      if (winner.jobNumber !== jobNumber) {
        const which = actor.kind === "admin" ? ` (job ${winner.jobNumber})` : "";
        const waitS = Math.max(1, Math.ceil((winner.createdMs + PAUSE_MS - createdMs) / 1000));
        throw new Conflict(`The agent was sent another command within the last 10 seconds${which}`, waitS);
      }
      // If nobody hears it, the outbox is looked at before long all the same.
      await nudge().catch((error: unknown) => log.warn("the publisher was not told", { error: describeError(error) }));
      return { status: "queued", job_number: jobNumber, websocket: `/api/v1/ws/${jobNumber}` };
    },
  };
}

/** Where an agent says which commands it knows, others are refused. A command may have arguments behind its name. */
function refuseUnknown(command: string, known: unknown): void {
  if (!Array.isArray(known)) return;
  const [name] = command.split(" ");
  if (!known.includes(command) && !known.includes(name)) throw new Malformed("The agent does not know this command");
}
