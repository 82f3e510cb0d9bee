import type { Authenticate } from "../auth/identity.ts";
import type { Tokens } from "../auth/tokens.ts";
import { NotAuthenticated } from "../lib/errors.ts";
import { log } from "../lib/log.ts";
import { clientKind } from "./client-kind.ts";
import { loginRejection, mayUseResource, mayUseRoutingKey } from "./rabbitmq-rules.ts";
import type { BrokerClient } from "./topics.ts";

/** Answers the questions of RabbitMQ about its clients. */

/** What RabbitMQ asks about: a login, or what a client that has logged in may use. */
export type Check = "user" | "vhost" | "resource" | "topic";

export interface AuthorizationOptions {
  tokens: Pick<Tokens, "verify">;
  authenticate: Authenticate;
}

/** A question of RabbitMQ's plugin rabbitmq_auth_backend_http. Absent fields are empty. */
interface Question {
  username: string;
  /** Of a login: the client's token. */
  password: string;
  client_id: string;
  /** After a login: what the response to it has added. */
  tags: string;
  vhost: string;
  resource: string;
  name: string;
  permission: string;
  routing_key: string;
}

const KINDS: readonly BrokerClient["kind"][] = ["agent", "service", "subscriber", "controller"];
/** Clients may choose another virtual host by their user name. */
const VIRTUAL_HOST = "/";

/** Returns `deny`, or `allow`. After a login the kind of client follows, which RabbitMQ passes on as a tag with all further questions. */
export async function answer(check: Check, fields: URLSearchParams, options: AuthorizationOptions): Promise<string> {
  const field = (name: keyof Question): string => fields.get(name) ?? "";
  const question: Question = {
    username: field("username"),
    password: field("password"),
    client_id: field("client_id"),
    tags: field("tags"),
    vhost: field("vhost"),
    resource: field("resource"),
    name: field("name"),
    permission: field("permission"),
    routing_key: field("routing_key"),
  };
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
  { vhost, resource: kind, name, permission, routing_key }: Question,
): boolean {
  if (vhost !== VIRTUAL_HOST) return false;
  if (check === "resource") return mayUseResource(client, { kind, name, permission });
  return check === "vhost" || mayUseRoutingKey(client, permission, routing_key);
}

/** Returns the client that logs in. Undefined if its token is not valid, or if RabbitMQ cannot serve it. */
async function clientOf(
  { username, password, client_id }: Question,
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
