import { eventTopic, isTopicLevel } from "../broker/topics.ts";
import { Invalid } from "../lib/errors.ts";
import { isPrivateHost } from "../lib/private-address.ts";
import { Email } from "../schemas/primitives.ts";
import type { TargetSpec } from "../schemas/subscriptions.ts";

export interface TargetContext {
  /** Id of the subscription. */
  id: string;
  /** Name of the account that owns it. */
  owner: string;
  /** Whether the caller manages the subscriptions of all accounts. */
  isManager: boolean;
  /** Whether addresses of private networks and of this machine are allowed. */
  allowsPrivate: boolean;
  /** The address before a change. */
  oldAddress?: string;
}

/** Where to deliver, and user name and password of that server, separated by a colon. */
export interface ResolvedTarget {
  address: string;
  credentials: string | undefined;
}

const invalid = (msg: string): Invalid =>
  new Invalid([{ loc: ["target", "address"], type: "value_error", msg: `Value error, ${msg}` }]);

/** Throws `Invalid` if the service must not or cannot deliver there. */
export function resolveTarget(target: TargetSpec, context: TargetContext): ResolvedTarget {
  switch (target.kind) {
    case "webhook":
    case "alertmanager":
      return resolveUrl(target.address, context.allowsPrivate);
    case "email":
      return { address: resolveEmail(target.address, context), credentials: undefined };
    case "mqtt":
      return { address: resolveTopic(context), credentials: undefined };
  }
}

function resolveUrl(text: string, allowsPrivate: boolean): ResolvedTarget {
  const url = new URL(text);
  if (!allowsPrivate && isPrivateHost(url.hostname)) {
    throw invalid("the address is not on the public internet. The setting WEBHOOK_NETWORKS allows no others");
  }
  const { username, password } = url;
  [url.username, url.password, url.hash] = ["", "", ""];
  const credentials = `${decoded(username)}:${decoded(password)}`;
  return { address: String(url), credentials: username === "" && password === "" ? undefined : credentials };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("the user name or the password has an invalid percent-encoding");
  }
}

/** The service must not send e-mail to strangers, so only an administrator chooses another address than the owner's own. */
function resolveEmail(given: string | undefined, { owner, isManager, oldAddress }: TargetContext): string {
  const address = given ?? oldAddress ?? owner;
  if (!Email.safeParse(address).success) throw invalid("an app has no e-mail address. An administrator can set one");
  if (address === owner || address === oldAddress || isManager) return address;
  throw invalid("only an administrator can set another address than your own");
}

function resolveTopic({ id, owner }: TargetContext): string {
  if (!isTopicLevel(owner)) throw invalid("the name of the account has a +, which a topic cannot contain");
  return eventTopic(owner, id);
}
