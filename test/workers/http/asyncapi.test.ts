import { Validator } from "@cfworker/json-schema";
import { beforeAll, describe, expect, it } from "vitest";
import type { AsyncApiDocument } from "../../../src/http/docs/asyncapi.ts";
import { encodeJson } from "../../../src/lib/encoding.ts";
import { EVENT_TYPES } from "../../../src/schemas/events.ts";
import { BUFFER_LIMITS, CLOSE, MESSAGE_KINDS } from "../../../src/schemas/stream-protocol.ts";
import { eventLog, openEvents } from "../events/event-support.ts";
import { putLabels } from "../fleet/requests.ts";
import { Client, connect, type Envelope, movableClock, newJob, soon } from "../jobs/job-support.ts";
import { adminToken, bearer, newAgent, newApp, request, send, uniqueName } from "../support.ts";

let document: AsyncApiDocument;

beforeAll(async () => {
  document = (await (await request("/asyncapi.json")).json()) as AsyncApiDocument;
});

/** Returns the value at a JSON pointer into the document. */
const lookUp = (reference: string): unknown =>
  reference
    .slice(2)
    .split("/")
    .reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], document);

const validatorOf = (schema: object) => new Validator({ ...schema, components: document.components } as object, "7");
const errorsOf = (schema: object, value: unknown) => validatorOf(schema).validate(value).errors;

function expectAsDocumented(message: Envelope): void {
  const payload = document.components.messages[message.type]?.payload;
  expect(errorsOf(payload ?? { not: {} }, message), JSON.stringify(message)).toEqual([]);
}

/** Checks each row against the named schema. The message schema alone would accept any array. */
function expectRows(messages: Envelope[], type: string, schema: string): void {
  const rows = messages.filter((message) => message.type === type).flatMap(({ data }) => data as unknown[]);
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) expect(errorsOf({ $ref: `#/components/schemas/${schema}` }, row)).toEqual([]);
}

async function follow(path: string, token: string): Promise<Client> {
  const { webSocket } = await request(path, { headers: { Upgrade: "websocket", ...bearer(token) } });
  if (webSocket === null) throw new Error("No socket");
  return new Client(webSocket);
}

async function untilFinal(client: Client): Promise<Envelope[]> {
  await expect.poll(() => client.messages.some(({ final }) => final), { timeout: 20_000 }).toBe(true);
  return client.messages;
}

const startJob = async (path: string, token: string): Promise<string> =>
  ((await (await send("POST", path, undefined, token)).json()) as { websocket: string }).websocket;

describe("the AsyncAPI document", () => {
  it("resolves all its references and uses every message that it defines", () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, to = ""]) => to);
    expect(references.filter((to) => lookUp(to) === undefined)).toEqual([]);
    const messages = Object.keys(document.components.messages);
    expect(messages.filter((name) => !references.includes(`#/components/messages/${name}`))).toEqual([]);
    for (const { channel, messages: used } of Object.values(document.operations)) {
      for (const { $ref } of used) expect($ref.startsWith(`${channel.$ref}/messages/`)).toBe(true);
    }
  });

  it("has a channel for each WebSocket, and the host of the request as its server", () => {
    expect(Object.values(document.channels).map(({ address }) => address)).toEqual([
      "/api/v1/ws/{job_number}",
      "/api/v1/callback/agent_data/ws/{job_number}",
      "/api/v1/callback/agent_details/ws/{job_number}",
      "/api/v1/callback/emulator/ws/{job_number}",
      "/api/v1/events/ws",
    ]);
    for (const { address, parameters } of Object.values(document.channels)) {
      expect(Object.keys(parameters)).toEqual([...address.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
    }
    expect(document.servers).toEqual({ here: { host: "controller.test", protocol: "wss" } });
  });

  it("defines every kind of message and every close code", () => {
    expect(Object.keys(document.components.messages)).toEqual(expect.arrayContaining([...MESSAGE_KINDS]));
    expect(Object.keys(document.channels.eventsStream?.messages ?? {})).toEqual(
      expect.arrayContaining([...EVENT_TYPES]),
    );
    const codes = document.channels.jobsStream?.["x-close-codes"].map(({ code }) => code);
    expect(codes).toEqual(Object.values(CLOSE).map(({ code }) => code));
  });

  it("is linked from the API reference", async () => {
    expect(await (await request("/docs")).text()).toContain('href="/asyncapi.json"');
  });
});

describe("the AsyncAPI document matches the messages on a socket", () => {
  const clock = movableClock();

  it("for the data of an agent", async () => {
    const { apId, token } = await newAgent();
    const ts = Date.now() - 60_000;
    await send("POST", "/api/v1/agent_update/update", { ts, payload: { load: 0.5, note: "a, b" } }, token);
    const range = `start_time=${ts - 1_000}&end_time=${ts + 1_000}`;
    const websocket = await startJob(`/api/v1/agent_data/request_agent_data?agent_id=${apId}&${range}`, token);
    const messages = await untilFinal(await follow(websocket, token));
    messages.forEach(expectAsDocumented);
    expectRows(messages, "agent_data", "HistoryRow");
    expect(messages.map(({ type }) => type)).toEqual(["status", "agent_data", "agent_data", "status"]);
  });

  it("for the details of all agents", async () => {
    // One agent only: other tests create agents with field names that the validator cannot handle.
    const { apId } = await newAgent({ a: { b: [1] } });
    const { token } = await newApp({ ap_ids: [apId] });
    const websocket = await startJob("/api/v1/agent_details/request_all_agents_details", token);
    const messages = await untilFinal(await follow(websocket, token));
    messages.forEach(expectAsDocumented);
    expectRows(messages, "agent_details", "AgentDetails");
  });

  it("for callbacks, in both formats", async () => {
    const [admin, jobNumber] = [await adminToken(), uniqueName()];
    const enveloped = await follow(`/api/v1/ws/${jobNumber}`, admin);
    const bare = await follow(`/api/v1/callback/agent_data/ws/${jobNumber}`, admin);
    const posts = { agent_data: [1, "x", null, [2]], agent_details: [{}], emulator: [{ a: 1 }], command: [{ b: {} }] };
    for (const [kind, data] of Object.entries(posts)) {
      expect((await send("POST", `/api/v1/callback/${kind}?job_number=${jobNumber}`, data, admin)).status).toBe(200);
    }
    await Promise.all([enveloped.receives(4), bare.receives(4)]);
    enveloped.messages.forEach(expectAsDocumented);
    expect(enveloped.messages.map(({ type }) => type)).toEqual(Object.keys(posts));
    for (const text of bare.texts) {
      expect(errorsOf(document.components.messages.bare?.payload ?? { not: {} }, JSON.parse(text))).toEqual([]);
    }
  });

  it("for events, by their type", async () => {
    const after = await eventLog.newestId();
    const { apId } = await newAgent({}, { site: uniqueName() });
    await putLabels(apId, { floor: "1" }, await adminToken());
    const socket = await openEvents((await newApp({ ap_ids: [apId] })).token, `after=${after}`);
    await socket.until((events) => events.length === 3);
    for (const event of socket.events()) {
      const payload = document.components.messages[event.type]?.payload ?? { not: {} };
      expect(errorsOf(payload, event), JSON.stringify(event)).toEqual([]);
      expect(errorsOf(payload, { ...event, type: "job.ended" })).not.toEqual([]);
    }
    expect(socket.events().map(({ type }) => type)).toEqual([
      "agent.registered",
      "agent.onboarded",
      "agent.relabelled",
    ]);
    socket.send({ ack: socket.events().at(-1)?.id });
    socket.end();
  });

  it("for dropped messages", async () => {
    const job = newJob();
    await job.post([1, 2].map((i) => ({ type: "agent_data", data: encodeJson([i]) })));
    clock.forwardMs = BUFFER_LIMITS.retentionMs + 1_000;
    await job.post([{ type: "agent_data", data: encodeJson([3]) }]);
    const client = await connect(job);
    await client.receives(2);
    expect(client.messages.map(({ type }) => type)).toEqual(["gap", "agent_data"]);
    client.messages.forEach(expectAsDocumented);
  });

  it("for the messages of a client", async () => {
    const job = newJob();
    await job.post([{ type: "agent_data", data: encodeJson([1]) }]);
    const client = await connect(job);
    await client.receives(1);
    const { acknowledgement, ping, pong } = document.components.messages;
    expect(errorsOf(acknowledgement?.payload ?? {}, { ack: 1 })).toEqual([]);
    expect(errorsOf(acknowledgement?.payload ?? {}, { ack: -1 })).not.toEqual([]);
    client.send({ ack: 1 });
    await soon(async () => (await job.describe()).acknowledgedUpTo === 1);
    client.send(ping?.payload.const);
    await client.receives(2);
    expect(client.texts[1]).toBe(pong?.payload.const);
    // Any other message closes the socket with a documented code.
    client.send({ ack: 1, more: true });
    await client.isClosed(CLOSE.unknown.code);
    expect(document.channels.jobsStream?.["x-close-codes"]).toContainEqual(expect.objectContaining(client.closed));
  });

  it("and detects a message that does not match", () => {
    const good = { job_number: "n", seq: 1, type: "status", ts: new Date().toISOString(), final: true };
    const schema = document.components.messages.status?.payload ?? {};
    const data = { state: "done", rows_sent: 1, rows_estimated: null };
    expect(errorsOf(schema, { ...good, data })).toEqual([]);
    expect(errorsOf(schema, { ...good, data: { ...data, rows_sent: "1" } })).not.toEqual([]);
    expect(errorsOf(schema, { ...good, data, seq: 0 })).not.toEqual([]);
  });
});
