import { ControllerClient, type ControllerClientOptions } from "../shared/controller-client.ts";

const TIMEOUT_MS = 10_000;

/** The outcome of a report: accepted, rejected for good, or to be sent again. */
export type ReportOutcome = "accepted" | "rejected" | "retry";

/** Logs emulated agents in and reports the progress of jobs. */
export class EmulatorClient extends ControllerClient {
  constructor(options: ControllerClientOptions) {
    super(options, TIMEOUT_MS);
  }

  /** Logs an agent in. Returns whether the controller accepted it, or undefined if the login should be tried again. */
  async logInAgent(apId: string, password: string): Promise<boolean | undefined> {
    const response = await this.requestToken("agent", apId, password).catch(() => undefined);
    await response?.arrayBuffer().catch(() => {});
    if (response === undefined || response.status >= 500 || response.status === 429) return undefined;
    return response.ok;
  }

  async report(jobNumber: string, items: readonly object[], idempotencyKey: string): Promise<ReportOutcome> {
    const path = `/api/v1/callback/emulator?job_number=${jobNumber}`;
    const headers = { "Idempotency-Key": idempotencyKey };
    const response = await this.post(path, JSON.stringify(items), headers).catch(() => undefined);
    await response?.arrayBuffer().catch(() => {});
    if (response?.status === 401) await this.logIn().catch(() => {});
    if (response?.ok) return "accepted";
    const isFinal = response !== undefined && response.status < 500 && ![401, 429].includes(response.status);
    return isFinal ? "rejected" : "retry";
  }
}
