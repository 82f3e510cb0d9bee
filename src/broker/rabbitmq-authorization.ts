import type { Authenticate } from "../auth/identity.ts";
import type { Tokens } from "../auth/tokens.ts";
import { NotAuthenticated } from "../lib/errors.ts";
import { log } from "../lib/log.ts";
import type { RabbitmqPath, RabbitmqQuestion } from "./rabbitmq-question.ts";
import { loginRejection, mayUseResource, mayUseRoutingKey } from "./rabbitmq-rules.ts";
import { type BrokerClient, clientKind } from "./topics.ts";

/** Answers the questions of RabbitMQ about its clients. */

export interface AuthorizationOptions {
  tokens: Pick<Tokens, "verify">;
  authenticate: Authenticate;
}

const KINDS: readonly BrokerClient["kind"][] = ["agent", "service", "subscriber", "controller"];
/** Clients may choose another virtual host by their user name. */
const VIRTUAL_HOST = "/";

/** Returns `deny`, or `allow`. After a login the kind of client follows, which RabbitMQ passes on as a tag with all further questions. */
export async function answer(
  check: RabbitmqPath["check"],
  question: RabbitmqQuestion,
  options: AuthorizationOptions,
): Promise<string> {
  if (check === "user") {
    const client = await clientOf(question, options);
    // RabbitMQ never forgets a tag, so there must be few.
    return client === undefined ? "deny" : `allow ${client.kind}`;
  }
  const kind = KINDS.find((kind) => question.tags === kind);
  return kind !== undefined && isAllowed(check, { kind, name: question.username }, question) ? "allow" : "deny";
}

function isAllowed(
  check: "vhost" | "resource" | "topic",
  client: BrokerClient,
  { vhost, resource: kind, name, permission, routing_key }: RabbitmqQuestion,
): boolean {
  if (vhost !== VIRTUAL_HOST) return false;
  if (check === "resource") return mayUseResource(client, { kind, name, permission });
  return check === "vhost" || mayUseRoutingKey(client, permission, routing_key);
}

/** Returns the client that logs in. Undefined if its token is not valid, or if RabbitMQ cannot serve it. */
async function clientOf(
  { username, password, client_id }: RabbitmqQuestion,
  { tokens, authenticate }: AuthorizationOptions,
): Promise<BrokerClient | undefined> {
  try {
    const { sub, login_type, scope, ver } = await tokens.verify(password);
    const kind = clientKind(login_type, scope.split(" "), ver);
    if (kind === undefined || sub !== username) return undefined;
    // The account may have changed since the token was issued. The controller itself has none.
    if (kind !== "controller") await authenticate(password);
    const client = { kind, name: sub };
    const reason = loginRejection(client, client_id);
    if (reason === undefined) return client;
    log.warn("broker login rejected", { client: `${kind}:${sub}`, reason });
  } catch (error) {
    if (!(error instanceof NotAuthenticated)) throw error;
  }
  return undefined;
}
