import { Identifier, MAX_JSON_DEPTH } from "../../schemas/primitives.ts";
import { MAX_DELIVERY_ERROR } from "../../schemas/telemetry.ts";
import type { Incoming } from "./subscriber.ts";

/** A message of an agent, as an item of a delivery to the service. */
export interface Outgoing {
  topic: string;
  apId: string;
  receivedMs: number;
  json: string;
  /** Of `json`, as UTF-8. */
  bytes: number;
  /** Why the agent's message is rejected. The item then tells the service only that, for its figures. */
  rejected?: string;
  acknowledge(): void;
}

/** The body of a delivery puts an object, a list and another object around what the agent sends. */
export const MAX_LEVELS = MAX_JSON_DEPTH - 3;
/** The service takes bodies of 1 MiB. The rest is for the members around the message. */
const MAX_BYTES = 1024 * 1024 - 1024;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Returns undefined for a topic that is no agent's. */
export function toOutgoing({ topic, payload, receivedMs, acknowledge }: Incoming): Outgoing | undefined {
  const [, apId, channel] = /^agent\/([^/]+)\/(data|result|status)$/.exec(topic) ?? [];
  if (apId === undefined || !Identifier.safeParse(apId).success) return undefined;
  const origin = { topic, apId, receivedMs, acknowledge };
  const content = contentOf(channel, payload);
  if ("rejected" in content) return rejection(origin, content.rejected);
  const { member, json } = content;
  const item = itemOf(origin, `"${member}":${json}`);
  return item.bytes > MAX_BYTES ? rejection(origin, "larger than 1 MiB as JSON") : item;
}

type Origin = Pick<Outgoing, "topic" | "apId" | "receivedMs" | "acknowledge">;

/** What takes the place of a message that cannot be delivered. The service always accepts it. */
export const rejection = (origin: Origin, reason: string): Outgoing => {
  const rejected = reason.slice(0, MAX_DELIVERY_ERROR);
  return { ...itemOf(origin, `"error":${JSON.stringify(rejected)}`), rejected };
};

function itemOf({ topic, apId, receivedMs, acknowledge }: Origin, member: string): Outgoing {
  const json = `{"ap_id":${JSON.stringify(apId)},"received_at":${receivedMs},${member}}`;
  return { topic, apId, receivedMs, acknowledge, json, bytes: Buffer.byteLength(json) };
}

type Content = { member: "report" | "result"; json: string } | { rejected: string };

function contentOf(channel: string | undefined, payload: Buffer): Content {
  let text: string;
  try {
    text = utf8.decode(payload);
  } catch {
    return { rejected: "not UTF-8" };
  }
  // An agent that reports its status is online.
  if (channel === "status") return { member: "report", json: JSON.stringify({ payload: { status: text } }) };
  try {
    if (isDeeper(JSON.parse(text), MAX_LEVELS)) return { rejected: `nested deeper than ${MAX_LEVELS} levels` };
  } catch {
    return { rejected: "not JSON" };
  }
  // The text itself: encoded again, it could be longer or say something else, such as null for 1e999.
  return { member: channel === "data" ? "report" : "result", json: text };
}

/** Stops below the last level that is allowed, so that it cannot exhaust the stack. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((child) => isDeeper(child, levels - 1));
}
