import { exchange, type FuzzRequest, type FuzzResponse } from "./exchange.ts";

/** Names of one length: an agent that the caller must not see, and one that does not exist. */
export interface Twins {
  hidden: string;
  absent: string;
  /** Agents that the caller sees. A repeated request about them may have another result. */
  visible: string;
}

/** Names are unique, so this operation must reject one that is taken. */
const CREATION = /^\/api\/v1\/agents\/(?:\?|$)/;
/** Job numbers and times differ between any two responses. */
const VARYING = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z/g;

/** Sends the request of a caller again with the absent name. Returns a violation if the caller could tell the two agents apart. */
export async function compareTwins(
  url: string,
  sent: FuzzRequest,
  { status, type, text }: FuzzResponse,
  { hidden, absent, visible }: Twins,
  deadlineMs: number,
): Promise<string | undefined> {
  const wire = `${sent.target}\n${sent.body?.toString("latin1") ?? ""}`;
  if (!wire.includes(hidden) || wire.includes(visible) || CREATION.test(sent.target)) return undefined;
  const body = sent.body && Buffer.from(sent.body.toString("latin1").replaceAll(hidden, absent), "latin1");
  const twin = await exchange(url, { ...sent, target: sent.target.replaceAll(hidden, absent), body }, deadlineMs);
  const plain = (response: string, name: string) => response.replaceAll(name, "").replaceAll(VARYING, "");
  const isSame = status === twin.status && type === twin.type && plain(text, hidden) === plain(twin.text, absent);
  return isSame ? undefined : `tells a hidden agent (${status}) from an absent one (${twin.status}): ${twin.text}`;
}
