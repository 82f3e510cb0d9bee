import * as z from "zod";
import { ControllerClient, type ControllerClientOptions, isFromController } from "../shared/controller-client.ts";
import { BatchRejected } from "./batch-queue.ts";
import type { Outgoing } from "./outgoing.ts";

const TIMEOUT_MS = 30_000;
const DeliveryResponse = z.object({ results: z.array(z.object({ error: z.string().optional() })) });

/** Delivers messages of agents to the controller. */
export class BridgeClient extends ControllerClient {
  constructor(options: ControllerClientOptions) {
    super(options, TIMEOUT_MS);
  }

  /**
   * Delivers messages and returns the outcome of each, in the same order. Throws `BatchRejected` if the controller rejects the content
   * of the batch, and another error if the same batch should be sent again.
   */
  async deliver(messages: readonly Outgoing[]): Promise<{ error?: string | undefined }[]> {
    const body = `{"messages":[${messages.map(({ json }) => json).join(",")}]}`;
    const response = await this.post("/api/v1/bridge/data", body);
    if (!response.ok) {
      await response.body?.cancel();
      const { status } = response;
      if (status === 401) await this.logIn();
      const reason = `the controller responded with ${status}`;
      throw isContentError(response) ? new BatchRejected(reason, status === 500) : new Error(reason);
    }
    const { results } = DeliveryResponse.parse(await response.json());
    if (results.length !== messages.length)
      throw new Error(`the controller returned ${results.length} results for ${messages.length} messages`);
    return results;
  }
}

/**
 * Returns whether the content of a delivery caused the error. Other statuses concern the bridge's account (401, 403), the URL (404) or
 * the load (429, 503). Without the controller's own header, a status comes from a proxy; a proxy may have a lower limit for bodies (413).
 */
const isContentError = (response: Response): boolean =>
  response.status === 413 || ([400, 422, 500].includes(response.status) && isFromController(response));
