import * as z from "zod";
import { fetchSafely } from "../shared/safe-fetch.ts";
import { BatchRejected } from "./batch-queue.ts";
import type { Outgoing } from "./outgoing.ts";

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
  /**
   * Delivers messages, and returns the outcome of each, in their order. Throws `BatchRejected` if the service rejects the batch for its
   * content, and another error if the same batch should be sent again.
   */
  deliver(messages: readonly Outgoing[]): Promise<{ error?: string | undefined }[]>;
}

export function createService({ url, appName, apiKey }: ServiceOptions): Service {
  let token = "";

  const logIn = async (): Promise<{ token: string }> => {
    const response = await fetchSafely(`${url}/api/v1/token/?login_type=third_party_app`, {
      method: "POST",
      body: new URLSearchParams({ username: appName, password: apiKey }),
      timeoutMs: TIMEOUT_MS,
    });
    if (!response.ok) throw new Error(`the service refused the login of ${appName} (${response.status})`);
    token = Token.parse(await response.json()).access_token;
    return { token };
  };

  return {
    logIn,

    async deliver(messages) {
      const response = await fetchSafely(`${url}/api/v1/bridge/data`, {
        method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: `{"messages":[${messages.map(({ json }) => json).join(",")}]}`,
        timeoutMs: TIMEOUT_MS,
      });
      if (!response.ok) {
        await response.body?.cancel();
        const { status } = response;
        if (status === 401) await logIn();
        const reason = `the service answered ${status}`;
        throw isAboutContent(response) ? new BatchRejected(reason, status === 500) : new Error(reason);
      }
      const { results } = Delivered.parse(await response.json());
      if (results.length !== messages.length) throw new Error("the service answered for other messages");
      return results;
    },
  };
}

/**
 * Whether the content of a delivery is at fault. Other statuses are about the bridge's account (401, 403), its address (404) or the load
 * (429, 503), and without the service's own header they come from a proxy. A proxy may have a lower limit for bodies, though.
 */
const isAboutContent = ({ status, headers }: Response): boolean =>
  status === 413 || ([400, 422, 500].includes(status) && headers.has("X-Request-Id"));
