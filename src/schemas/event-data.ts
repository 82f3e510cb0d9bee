import * as z from "zod";
import { EVENT_TYPES, type EventType, NetworkEvent } from "./events.ts";
import { TARGET_KINDS } from "./subscriptions.ts";

/** What each type of event means, and its `data`. The triggers in drizzle/0008_events.sql write most of it. */

const nothing = z.object({});
const action = z.string().describe("As in the audit trail.");
const agents = z.int().describe("Number of agents.");
const jobNumber = z.string();
const account = z.string().describe("`user:…` or `app:…`.");
const labelChanges = z.record(z.string(), z.string().nullable()).describe("The changed labels; null: removed.");
const outcome = z.enum(["done", "failed", "expired", "cancelled", "removed"]);
const command = z.string().nullable().describe("Without its arguments, which may be secrets.");
const anything = z.record(z.string(), z.unknown());
const Job = z.object({
  job_number: jobNumber,
  kind: z.string(),
  agent: z.string().nullable().describe("The agent whose data the job returns."),
});
const Emulation = z.object({ job_number: jobNumber, agents: agents.nullable() });
const Component = z.object({ component: z.string() });

interface EventKind {
  description: string;
  data: z.ZodType;
}

export const EVENT_KINDS: Record<EventType, EventKind> = {
  "agent.registered": { description: "An agent was created or has enrolled.", data: nothing },
  "agent.onboarded": { description: "An agent has logged in for the first time.", data: nothing },
  "agent.updated": {
    description: "An agent's configuration or password was changed.",
    data: z.object({ action }),
  },
  "agent.relabelled": {
    description: "An agent's labels were changed. Without `ap_id`: those of several agents by one request.",
    data: z.union([
      z.object({ agents, selector: z.string().nullable(), labels: labelChanges.nullable() }),
      z.object({ labels: labelChanges }),
    ]),
  },
  "agent.deleted": {
    description: "An agent was deleted. Without `ap_id`: all agents of an emulation.",
    data: z.union([z.object({ agents, job_number: jobNumber }), nothing]),
  },
  "agent.online": { description: "An agent reports again.", data: anything },
  "agent.offline": { description: "An agent has stopped reporting.", data: anything },
  "command.issued": {
    description: "A command is on its way to an agent.",
    data: z.object({ job_number: jobNumber, command }),
  },
  "command.answered": {
    description: "An agent has carried out a command, or has failed to.",
    data: z.object({ job_number: jobNumber, command, outcome }),
  },
  "command.expired": {
    description: "An agent did not answer a command in time.",
    data: z.object({ job_number: jobNumber, command, outcome }),
  },
  "command.cancelled": {
    description: "A command was cancelled, or the account that sent it was deleted.",
    data: z.object({ job_number: jobNumber, command, outcome }),
  },
  "job.started": { description: "An account has requested data or opened a stream of its own.", data: Job },
  "job.ended": { description: "A job has ended.", data: Job.extend({ outcome }) },
  "emulation.started": { description: "An account has started emulated access points.", data: Emulation },
  "emulation.ended": { description: "An emulation has ended.", data: Emulation.extend({ outcome }) },
  "alert.fired": { description: "The condition of an alert rule holds.", data: anything },
  "alert.resolved": { description: "The condition of an alert rule holds no more.", data: anything },
  "alert.acknowledged": { description: "An operator has acknowledged an alert.", data: anything },
  "login.failing": {
    description:
      "Logins of one account have failed ten times within a minute, or logins from one address a hundred times.",
    data: z.object({
      object: z.string().describe("`user:…`, `agent:…`, `app:…` or `address:…`."),
      failures: z.int(),
      address: z.string().nullable().describe("The address of the last attempt."),
    }),
  },
  "account.created": { description: "A user or an app was created.", data: z.object({ account, action }) },
  "account.updated": {
    description: "A user or an app was changed, such as its password, roles or permissions.",
    data: z.object({ account, action }),
  },
  "account.deleted": { description: "A user or an app was deleted.", data: z.object({ account, action }) },
  "grants.changed": {
    description: "The grants of a user or an app were changed, or the group that they refer to.",
    data: z.union([
      z.object({
        account,
        action,
        grants: z.array(z.object({ role: z.string(), selector: z.string() })).nullable(),
      }),
      z.object({ account, action, group: z.string(), selector: z.string() }),
    ]),
  },
  "group.changed": {
    description: "A group was created, changed or deleted.",
    data: z.object({ group: z.string(), action, selector: z.string().nullable() }),
  },
  "enrolment_token.changed": {
    description: "An enrolment token was created or revoked.",
    data: z.object({ token: z.string().describe("Its first characters."), action }),
  },
  "component.down": { description: "A component of `/readyz` does not respond.", data: Component },
  "component.up": { description: "A component of `/readyz` responds again.", data: Component },
  "subscription.failing": {
    description: "The delivery to a subscription was given up. Its owner can resume it.",
    data: z.object({
      subscription_id: z.string(),
      name: z.string(),
      target: z.enum(TARGET_KINDS),
      error: z.string().nullable(),
      failing_since: z.iso.datetime().nullable(),
    }),
  },
  "subscription.test": {
    description: "An account tests its subscription. It is not in the log, and its `id` is 0.",
    data: z.object({ subscription_id: z.string(), name: z.string(), text: z.string() }),
  },
};

const idOf = (type: EventType): string => type.replace(/(?:^|[._])(.)/g, (_, letter: string) => letter.toUpperCase());

const toMessage = (type: EventType): z.ZodType => {
  const { description, data } = EVENT_KINDS[type];
  return NetworkEvent.extend({ type: z.literal(type), data }).meta({ id: `${idOf(type)}Event`, description });
};

/** The schemas of the events of each type. */
export const EVENT_MESSAGES = Object.fromEntries(EVENT_TYPES.map((type) => [type, toMessage(type)])) as Record<
  EventType,
  z.ZodType
>;
