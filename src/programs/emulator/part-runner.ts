import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { seedOf } from "../../emulator/models/random.ts";
import { commandSite, createSite, type Site, stepSite } from "../../emulator/models/site.ts";
import { print } from "../shared/cli.ts";
import type { BrokerLink } from "./broker-link.ts";
import type { EmulatorService } from "./emulator-client.ts";
import type { JobFiles, Progress } from "./job-files.ts";
import type { PartMessage } from "./part-message.ts";
import { reportNumber } from "./progress-sequence.ts";

/** Runs one part of a job from its claim to its end, or until the emulator is stopped. */

export interface PartRun {
  part: PartMessage;
  /** Of this emulator. */
  id: string;
  service: EmulatorService;
  link: BrokerLink;
  files: JobFiles;
  signal: AbortSignal;
}

const STEP_MS = 1_000;
const REPORT_EVERY_STEPS = 5;
const LOGINS_AT_ONCE = 8;
const RETRY_MS = 500;

const Command = z.object({ job_number: z.string(), command: z.string(), expires_at: z.iso.datetime() });

export async function runPart(run: PartRun): Promise<void> {
  const { part, service, link, files, signal } = run;
  const begun = files.progress(part);
  const progress: Progress = begun ?? { startedMs: Date.now(), samples: 0, sites: sitesOf(part) };
  const listen = () => {
    for (const { ap_id } of agentsOf(part)) link.listen(ap_id, (payload) => obey(run, progress, ap_id, payload));
  };
  // Once claimed it is published no more: whoever claims it must still know of it after being killed before the answer.
  if (begun === undefined) files.save(part);
  // What is ours already obeys while the service is asked: a command that is heard is not sent again by the broker.
  else listen();
  try {
    // What ended while nobody ran it may be over for the service too, which lets no one claim it again; its last word is due all the same.
    if (Date.now() < endOf(part, progress)) {
      const claim = { ...summary(run, progress, 0), state: "running" };
      const claimed = await insist(() => service.report(part.job_number, [claim], keyOf(run, "claim")), signal);
      // Another emulator has it, or nobody wants it any more. Without an answer it stays, for the next start.
      if (claimed === "refused") files.remove(part);
      if (claimed !== "taken") return;
      files.save(part, progress);
      listen();
      await emulate(run, progress);
    }
  } finally {
    for (const { ap_id } of agentsOf(part)) link.listen(ap_id, undefined);
  }
  if (signal.aborted) return;
  const report = { ...summary(run, progress, 0), state: "done" };
  await insist(() => service.report(part.job_number, [report], keyOf(run, "end")), signal);
  if (!signal.aborted) files.remove(part);
}

/** Has its access points report until they are over, the job is, or the emulator is stopped. */
async function emulate(run: PartRun, progress: Progress): Promise<void> {
  const { part, service, link, files, signal } = run;
  const agents = agentsOf(part);
  print(`Job ${part.job_number}, part ${part.part} of ${part.parts}: ${agents.length} access points.`);
  const endsMs = new Map(
    part.emulators.flatMap(({ duration, agents }) =>
      agents.map(({ ap_id }) => [ap_id, progress.startedMs + duration * 1000] as const),
    ),
  );
  const lastMs = endOf(part, progress);
  const online = new Set<string>();
  const over = new AbortController();
  const ended = AbortSignal.any([signal, over.signal]);
  const loggingIn = logInAll(run, agents, online, ended);

  let reporting: Promise<void> | undefined;
  for (let step = 1; Date.now() < lastMs && !ended.aborted; step++) {
    await sleep(Math.max(0, progress.startedMs + nextStep(progress.startedMs) - Date.now()), undefined, {
      signal: ended,
    }).catch(() => {});
    if (ended.aborted) break;
    const nowMs = Date.now();
    progress.sites = progress.sites.map((site) => {
      const stepped = stepSite(site, nowMs);
      for (const { apId, sample } of stepped.samples) {
        if (!online.has(apId) || nowMs > (endsMs.get(apId) ?? 0)) continue;
        // Counted when the broker has it: what is on its way when the emulator is killed is lost.
        link.publish(`agent/${apId}/data`, { ts: nowMs, payload: sample }, () => progress.samples++);
      }
      return stepped.site;
    });
    if (step % REPORT_EVERY_STEPS !== 0) continue;
    files.save(part, progress);
    const report = { ...summary(run, progress, online.size), state: "running" };
    const key = keyOf(run, String(reportNumber(nowMs - progress.startedMs, part.parts)));
    // One at a time: the last one must be known to be over before the last word.
    reporting ??= service.report(part.job_number, [report], key).then((reported) => {
      reporting = undefined;
      // The job was cancelled, and its agents may be gone.
      if (reported === "refused") over.abort();
    });
  }
  over.abort();
  // What is under way goes before the last word.
  await Promise.all([loggingIn, reporting]);
  files.save(part, progress);
}

const agentsOf = ({ emulators }: PartMessage) => emulators.flatMap(({ agents }) => agents);

/** When the last of its access points is over. */
const endOf = ({ emulators }: PartMessage, { startedMs }: Progress): number =>
  startedMs + Math.max(...emulators.map(({ duration }) => duration)) * 1000;

/** Whole steps since the start, so that every agent reports on the second and does not drift. */
const nextStep = (startedMs: number): number => Math.ceil((Date.now() - startedMs + 1) / STEP_MS) * STEP_MS;

function summary({ part, id }: PartRun, { samples, startedMs }: Progress, online: number): Record<string, unknown> {
  const agents = agentsOf(part).length;
  const started_at = new Date(startedMs).toISOString();
  return { part: part.part, parts: part.parts, emulator: id, agents, online, samples, started_at };
}

const keyOf = ({ part, id }: PartRun, what: string): string => `${id} ${part.part} ${what}`;

/** Groups the access points by site: devices move from one access point of a site to another. */
export function sitesOf({ job_number, emulators }: PartMessage): Site[] {
  const placed = emulators.flatMap(({ access_point_type, num_devices, agents }) =>
    agents.map(({ ap_id, latitude, longitude, site }) => ({
      place: site ?? `${latitude} ${longitude}`,
      longitude,
      spec: { apId: ap_id, technology: access_point_type, numDevices: num_devices },
    })),
  );
  return [...Map.groupBy(placed, ({ place }) => place).values()].map((its, i) =>
    createSite(
      { longitudeDeg: its[0]?.longitude ?? 0, accessPoints: its.map(({ spec }) => spec) },
      seedOf(Number.parseInt(job_number.slice(0, 8), 16) || 1, i),
    ),
  );
}

async function logInAll(
  { service }: PartRun,
  agents: readonly { ap_id: string; password: string }[],
  online: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...agents];
  const lane = async (): Promise<void> => {
    for (let agent = waiting.shift(); agent !== undefined && !signal.aborted; agent = waiting.shift()) {
      const { ap_id, password } = agent;
      // One that was removed meanwhile stays away.
      if (await insist(() => service.logInAgent(ap_id, password), signal)) online.add(ap_id);
    }
  };
  await Promise.all(Array.from({ length: LOGINS_AT_ONCE }, lane));
}

/** Until there is an answer that stands. */
async function insist<T>(ask: () => Promise<T | "later" | undefined>, signal: AbortSignal): Promise<T | undefined> {
  while (!signal.aborted) {
    const answer = await ask();
    if (answer !== undefined && answer !== "later") return answer as T;
    await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
  }
  return undefined;
}

/** More commands than this within the minute that each is valid are not to be expected. */
const MAX_ANSWERED = 10_000;

/** The service publishes a command until it has the answer. A repeated one gets the same answer again, and is not executed again. */
function obey({ link }: PartRun, progress: Progress, apId: string, payload: Buffer): void {
  const parsed = Command.safeParse(parseJson(payload));
  if (!parsed.success) return;
  const { job_number: jobNumber, command } = parsed.data;
  const [expiresMs, nowMs] = [Date.parse(parsed.data.expires_at), Date.now()];
  if (expiresMs < nowMs) return;
  let answer = progress.answered?.find((answered) => answered.jobNumber === jobNumber)?.answer;
  if (answer === undefined) {
    answer = { job_number: jobNumber, ...carryOut(progress, apId, command) };
    const valid = (progress.answered ?? []).filter((answered) => answered.expiresMs >= nowMs);
    progress.answered = [...valid.slice(1 - MAX_ANSWERED), { jobNumber, expiresMs, answer }];
  }
  link.publish(`agent/${apId}/result`, answer);
}

function carryOut(progress: Progress, apId: string, command: string): { status: string; data: object } {
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
