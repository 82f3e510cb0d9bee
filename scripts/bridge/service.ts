import * as z from "zod";
import { Identifier } from "../../src/schemas/primitives.ts";
import type { Incoming } from "./broker-listener.ts";

/** The service, as the bridge sees it. */

export interface ServiceOptions {
  url: string;
  appName: string;
  apiKey: string;
}

const TIMEOUT_MS = 30_000;
const Token = z.object({ access_token: z.string() });
const Delivered = z.object({ results: z.array(z.object({ error: z.string().optional() })) });

export interface Service {
  logIn(): Promise<{ token: string }>;
  /** Has messages stored; the outcome of each, in their order. Fails where it should be tried again. */
  deliver(messages: readonly Incoming[]): Promise<{ error?: string | undefined }[]>;
}

export function createService({ url, appName, apiKey }: ServiceOptions): Service {
  let token = "";

  const logIn = async (): Promise<{ token: string }> => {
    const response = await fetch(`${url}/api/v1/token/?login_type=third_party_app`, {
      method: "POST",
      body: new URLSearchParams({ username: appName, password: apiKey }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) throw new Error(`the service refused the login of ${appName} (${response.status})`);
    token = Token.parse(await response.json()).access_token;
    return { token };
  };

  return {
    logIn,

    async deliver(incoming) {
      const parsed = incoming.map(({ topic, payload, receivedMs }) => parse(topic, payload, receivedMs));
      const messages = parsed.filter((message) => !("error" in message));
      if (messages.length === 0) return parsed.map(({ error }) => ({ error }));
      const response = await fetch(`${url}/api/v1/bridge/data`, {
        method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: JSON.stringify({ messages }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (response.status === 401) await logIn();
      if (!response.ok) throw new Error(`the service answered ${response.status}`);
      const results = Delivered.parse(await response.json()).results.values();
      return parsed.map((message) => ("error" in message ? { error: message.error } : (results.next().value ?? {})));
    },
  };
}

type Parsed =
  | { ap_id: string; received_at: number; report?: unknown; result?: unknown; error?: never }
  | { error: string };

const utf8 = new TextDecoder("utf-8", { fatal: true });

function parse(topic: string, payload: Buffer, receivedMs: number): Parsed {
  const [, apId, channel] = /^agent\/([^/]+)\/(data|result|status)$/.exec(topic) ?? [];
  // One name that the service does not take would have it refuse the whole batch.
  if (!Identifier.safeParse(apId).success || apId === undefined) return { error: "not a topic of an agent" };
  const message = { ap_id: apId, received_at: receivedMs };
  try {
    const text = utf8.decode(payload);
    // That an agent says so shows that it is there.
    if (channel === "status") return { ...message, report: { payload: { status: text } } };
    const said: unknown = JSON.parse(text);
    return channel === "data" ? { ...message, report: said } : { ...message, result: said };
  } catch {
    return { error: "not JSON" };
  }
}
