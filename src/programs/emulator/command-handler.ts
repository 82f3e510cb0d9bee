import * as z from "zod";
import { commandSite } from "../../emulator/models/site.ts";
import type { BrokerLink } from "./broker-link.ts";
import type { Progress } from "./job-files.ts";

const Command = z.object({ job_number: z.string(), command: z.string(), expires_at: z.iso.datetime() });

/** Each command is valid for a minute. An emulator gets fewer commands than this within a minute. */
const MAX_RESULTS = 10_000;

/**
 * Executes a command to an emulated access point and publishes the result. The controller publishes a command again until it has the
 * result. A repeated command is not executed again: its first result is published again.
 */
export function handleCommand(link: BrokerLink, progress: Progress, apId: string, payload: Buffer): void {
  const parsed = Command.safeParse(parseJson(payload));
  if (!parsed.success) return;
  const { job_number: jobNumber, command } = parsed.data;
  const [expiresMs, nowMs] = [Date.parse(parsed.data.expires_at), Date.now()];
  if (expiresMs < nowMs) return;
  let result = progress.answered?.find((earlier) => earlier.jobNumber === jobNumber)?.answer;
  if (result === undefined) {
    result = { job_number: jobNumber, ...execute(progress, apId, command) };
    const valid = (progress.answered ?? []).filter((earlier) => earlier.expiresMs >= nowMs);
    progress.answered = [...valid.slice(1 - MAX_RESULTS), { jobNumber, expiresMs, answer: result }];
  }
  link.publish(`agent/${apId}/result`, result);
}

function execute(progress: Progress, apId: string, command: string): { status: string; data: object } {
  for (const [i, site] of progress.sites.entries()) {
    if (!site.accessPoints.some((accessPoint) => accessPoint.apId === apId)) continue;
    const outcome = commandSite(site, apId, command, Date.now());
    if ("refused" in outcome) return { status: "failed", data: { command, detail: outcome.refused } };
    progress.sites[i] = outcome.site;
    return { status: "done", data: { command, detail: outcome.detail } };
  }
  return { status: "failed", data: { command, detail: "no such access point" } };
}

function parseJson(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch {
    return undefined;
  }
}
