import { Identifier, MAX_JSON_DEPTH } from "../../schemas/primitives.ts";
import { MAX_DELIVERY_ERROR_LENGTH } from "../../schemas/telemetry.ts";
import type { Incoming } from "./subscriber.ts";

/** A message of an agent, as an item of a delivery to the controller. */
export interface Outgoing {
  topic: string;
  apId: string;
  receivedMs: number;
  json: string;
  /** The length of `json` in UTF-8. */
  bytes: number;
  /** Why the bridge rejects the message. The item then contains only the reason, for the controller's service metrics. */
  rejected?: string;
  acknowledge(): void;
}

/** The body of a delivery wraps the agent's JSON in an object, an array and another object. */
export const MAX_LEVELS = MAX_JSON_DEPTH - 3;
/** The controller accepts bodies of up to 1 MiB. The last KiB is for the members around the message. */
const MAX_BYTES = 1024 * 1024 - 1024;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Returns undefined if the topic does not belong to an agent. */
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

/** Returns the item that replaces a message that cannot be delivered. The controller always accepts it. */
export const rejection = (origin: Origin, reason: string): Outgoing => {
  const rejected = reason.slice(0, MAX_DELIVERY_ERROR_LENGTH);
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
  // A status message counts as a report, because an agent that sends one is online.
  if (channel === "status") return { member: "report", json: JSON.stringify({ payload: { status: text } }) };
  try {
    if (isDeeper(JSON.parse(text), MAX_LEVELS)) return { rejected: `nested deeper than ${MAX_LEVELS} levels` };
  } catch {
    return { rejected: "not JSON" };
  }
  // Keep the original text: encoded again, it could be longer or differ, such as null for 1e999.
  return { member: channel === "data" ? "report" : "result", json: text };
}

/** Stops below the deepest level that is allowed, so that a message cannot exhaust the stack. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((child) => isDeeper(child, levels - 1));
}
