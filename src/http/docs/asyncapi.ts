import type * as z from "zod";
import { EVENT_MESSAGES } from "../../schemas/event-data.ts";
import { EVENT_LIMITS, EVENT_PROTOCOL, EVENT_TYPES, EventAcknowledgement } from "../../schemas/events.ts";
import { Acknowledgement, AnyItems } from "../../schemas/job.ts";
import { STREAM_MESSAGES } from "../../schemas/stream.ts";
import {
  BUFFER_LIMITS,
  CLOSE,
  DATA_KINDS,
  KEEP_ALIVE,
  MESSAGE_KINDS,
  SOCKET_LIMITS,
  STREAM_PROTOCOL,
  type WebSocketFormat,
} from "../../schemas/stream-protocol.ts";
import { BEARER_PROTOCOL } from "../operation.ts";
import type { DeclaredRoute } from "../route-registry.ts";
import { API_VERSION, type JsonSchema, toSchema } from "./openapi.ts";

/** The AsyncAPI 3.0 document of the WebSockets, built from the declared routes and the schemas of their messages. */

interface Reference {
  $ref: string;
}

interface Message {
  name: string;
  contentType?: string;
  summary?: string | undefined;
  payload: JsonSchema;
}

interface Channel {
  address: string;
  summary: string;
  description?: string;
  parameters: Record<string, { description: string }>;
  messages: Record<string, Reference>;
  bindings: { ws: { method: "GET"; query?: JsonSchema; headers: JsonSchema; bindingVersion: "0.1.0" } };
  "x-close-codes": { code: number; reason: string; remedy: string }[];
}

interface Operation {
  action: "send" | "receive";
  channel: Reference;
  summary: string;
  messages: Reference[];
  security: Reference[];
  reply?: { channel: Reference; messages: Reference[] };
}

export interface AsyncApiDocument {
  asyncapi: "3.0.0";
  info: { title: string; version: string; description: string };
  defaultContentType: "application/json";
  servers: Record<string, { host: string; protocol: "ws" | "wss" }>;
  channels: Record<string, Channel>;
  operations: Record<string, Operation>;
  components: {
    schemas: Record<string, JsonSchema>;
    messages: Record<string, Message>;
    securitySchemes: Record<string, object>;
  };
}

const MIB = 1024 * 1024;

const DESCRIPTION = `The results of a job arrive over its WebSocket.

A socket receives all unacknowledged messages, oldest first, and then new ones: at least once, and in order. \`{"ack": <seq>}\`, or \
\`?after=<seq>\` when connecting, acknowledges all messages up to that number, for the whole job. A job keeps unacknowledged messages \
for ${BUFFER_LIMITS.retentionMs / 3_600_000} hours, up to ${BUFFER_LIMITS.messages} messages and ${BUFFER_LIMITS.bytes / MIB} MiB. A \
\`gap\` message reports dropped messages. A job has at most ${SOCKET_LIMITS.sockets} sockets. The service closes a socket with more than \
${SOCKET_LIMITS.unacknowledgedBytes / MIB} MiB of unacknowledged messages.

The event log has a WebSocket of its own. It sends the events after \`?after=<id>\`, or only new ones, in the order of their ids, as far as the \
account sees them. After ${EVENT_LIMITS.unacknowledged} unacknowledged events it waits for \`{"ack": <id>}\`, and closes after \
${EVENT_LIMITS.stalledMs / 1000} seconds without one. Unlike at a job, an acknowledgement removes nothing: to resume, connect with \`after\`.`;

/** What the service sends over a socket of each format, and how a client acknowledges it. */
const FORMATS: Record<WebSocketFormat, { sent: readonly string[]; summary: string; acknowledgement: string }> = {
  envelope: { sent: MESSAGE_KINDS, summary: "Send the job's messages", acknowledgement: "acknowledgement" },
  bare: { sent: ["bare"], summary: "Send the job's messages", acknowledgement: "acknowledgement" },
  events: { sent: EVENT_TYPES, summary: "Send events", acknowledgement: "event_acknowledgement" },
};

const { cancelled: _cancelled, expired: _expired, ...CLOSE_EVENTS } = CLOSE;

const ref = (...path: string[]): Reference => ({
  $ref: `#/${path.map((segment) => segment.replaceAll("/", "~1")).join("/")}`,
});

/**
 * Builds the document.
 * @param url the URL of the request for the document, which has the service's address as the caller knows it
 */
export function buildAsyncApi(routes: readonly DeclaredRoute[], url: URL): AsyncApiDocument {
  const schemas: Record<string, JsonSchema> = {};
  // AsyncAPI assumes draft 07 for a schema that does not name its version.
  const convert = (schema: z.ZodType, io: "input" | "output") => toSchema(schema, io, schemas, "draft-07");
  const channels: AsyncApiDocument["channels"] = {};
  const operations: AsyncApiDocument["operations"] = {};
  for (const route of routes) {
    const format = route.operation.webSocket;
    if (format === undefined) continue;
    const name = route.operation.action.replace(/[^A-Za-z0-9]+(.)/g, (_, letter: string) => letter.toUpperCase());
    channels[name] = toChannel(route, format, convert);
    Object.assign(operations, toOperations(name, format));
  }
  return {
    asyncapi: "3.0.0",
    info: { title: "Multi-Access Network Controller: streams", version: API_VERSION, description: DESCRIPTION },
    defaultContentType: "application/json",
    servers: { here: { host: url.host, protocol: url.protocol === "https:" ? "wss" : "ws" } },
    channels,
    operations,
    components: { schemas, messages: toMessages(convert), securitySchemes: SECURITY_SCHEMES },
  };
}

const SECURITY_SCHEMES = {
  header: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "Header of the handshake." },
  protocol: {
    type: "httpApiKey",
    in: "header",
    name: "Sec-WebSocket-Protocol",
    description: `For browsers, which cannot set headers: \`${STREAM_PROTOCOL}, ${BEARER_PROTOCOL}<token>\`, or for events \`${EVENT_PROTOCOL}, …\`. The response selects the first.`,
  },
};

type Convert = (schema: z.ZodType, io: "input" | "output") => JsonSchema;

function toChannel({ path, operation, inputs }: DeclaredRoute, format: WebSocketFormat, convert: Convert): Channel {
  const { properties: parameters = {} } = inputs.param === undefined ? {} : convert(inputs.param, "input");
  const { sent, acknowledgement } = FORMATS[format];
  const messages = [...sent, acknowledgement, "ping", "pong"];
  return {
    address: path.replace(/:(\w+)/g, "{$1}"),
    summary: operation.summary,
    ...(operation.description !== undefined && { description: operation.description }),
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([name, schema]) => [
        name,
        { description: (typeof schema === "object" && schema.description) || name },
      ]),
    ),
    messages: Object.fromEntries(messages.map((name) => [name, ref("components", "messages", name)])),
    bindings: {
      ws: {
        method: "GET",
        ...(inputs.query !== undefined && { query: convert(inputs.query, "input") }),
        headers: {
          type: "object",
          properties: { Authorization: { type: "string" }, "Sec-WebSocket-Protocol": { type: "string" } },
        },
        bindingVersion: "0.1.0",
      },
    },
    "x-close-codes": Object.values(format === "events" ? CLOSE_EVENTS : CLOSE).map(({ code, reason, remedy }) => ({
      code,
      reason,
      remedy,
    })),
  };
}

/** Returns the operations from the service's side, as AsyncAPI defines them: a client receives what `send` names. */
function toOperations(name: string, format: WebSocketFormat): Record<string, Operation> {
  const { sent, summary, acknowledgement } = FORMATS[format];
  const channel = ref("channels", name);
  const messages = (names: readonly string[]) => names.map((message) => ref("channels", name, "messages", message));
  const security = Object.keys(SECURITY_SCHEMES).map((scheme) => ref("components", "securitySchemes", scheme));
  const operation = (action: Operation["action"], summary: string, names: readonly string[]): Operation => ({
    action,
    channel,
    summary,
    messages: messages(names),
    security,
  });
  return {
    [`${name}.deliver`]: operation("send", summary, sent),
    [`${name}.acknowledge`]: operation("receive", "Acknowledge everything up to a number", [acknowledgement]),
    [`${name}.ping`]: {
      ...operation("receive", "Check the connection and keep it alive", ["ping"]),
      reply: { channel, messages: messages(["pong"]) },
    },
  };
}

function toMessages(convert: Convert): Record<string, Message> {
  const messages: Record<string, Message> = {};
  for (const kind of MESSAGE_KINDS) {
    const schema: z.ZodType = STREAM_MESSAGES[kind];
    messages[kind] = { name: kind, summary: schema.description, payload: convert(schema, "output") };
  }
  messages.bare = {
    name: "bare",
    summary: `Only the \`data\` of a message of type ${DATA_KINDS.join(", ")}, if it is an array.`,
    payload: convert(AnyItems, "output"),
  };
  for (const [name, schema] of Object.entries({
    acknowledgement: Acknowledgement,
    event_acknowledgement: EventAcknowledgement,
  })) {
    messages[name] = { name, summary: schema.description, payload: convert(schema, "input") };
  }
  for (const type of EVENT_TYPES) {
    const schema = EVENT_MESSAGES[type];
    messages[type] = { name: type, summary: schema.description, payload: convert(schema, "output") };
  }
  for (const [name, text] of Object.entries(KEEP_ALIVE)) {
    messages[name] = { name, contentType: "text/plain", payload: { type: "string", const: text } };
  }
  return messages;
}
