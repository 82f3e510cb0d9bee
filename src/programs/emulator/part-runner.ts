import { setTimeout as sleep } from "node:timers/promises";
import { seedOf } from "../../emulator/models/random.ts";
import { createSite, type Site, stepSite } from "../../emulator/models/site.ts";
import { print } from "../shared/cli.ts";
import type { BrokerLink } from "./broker-link.ts";
import { handleCommand } from "./command-handler.ts";
import type { EmulatorClient } from "./emulator-client.ts";
import type { JobFiles, Progress } from "./job-files.ts";
import type { PartMessage } from "./part-message.ts";

/** Runs one part of a job from its claim to its end, or until the emulator stops. */

export interface PartRun {
  part: PartMessage;
  emulatorId: string;
  controller: EmulatorClient;
  link: BrokerLink;
  files: JobFiles;
  signal: AbortSignal;
}

const STEP_MS = 1_000;
const REPORT_EVERY_STEPS = 5;
const CONCURRENT_LOGINS = 8;
const RETRY_MS = 500;

export async function runPart(run: PartRun): Promise<void> {
  const { part, controller, link, files, signal } = run;
  const saved = files.progress(part);
  const progress: Progress = saved ?? { startedMs: Date.now(), samples: 0, sites: sitesOf(part) };
  const handleCommands = () => {
    for (const { ap_id } of agentsOf(part))
      link.handleCommands(ap_id, (payload) => handleCommand(link, progress, ap_id, payload));
  };
  // The controller does not publish a claimed part again. Save it first: a kill before the response must not lose it.
  if (saved === undefined) files.save(part);
  // A part of an earlier run executes commands before it is claimed again: the broker does not repeat a delivered command.
  else handleCommands();
  try {
    // The controller may reject a claim of a part that ended while no emulator ran it. Its final report is still due.
    if (Date.now() < endOf(part, progress)) {
      const claim = { ...summarize(run, progress, 0), state: "running" };
      const outcome = await untilFinal(() => controller.report(part.job_number, [claim], keyOf(run, "claim")), signal);
      // Rejected: another emulator has the part, or the job has ended. Without a response the part stays for the next start.
      if (outcome === "rejected") files.remove(part);
      if (outcome !== "accepted") return;
      files.save(part, progress);
      handleCommands();
      await emulate(run, progress);
    }
  } finally {
    for (const { ap_id } of agentsOf(part)) link.handleCommands(ap_id, undefined);
  }
  if (signal.aborted) return;
  const report = { ...summarize(run, progress, 0), state: "done" };
  await untilFinal(() => controller.report(part.job_number, [report], keyOf(run, "end")), signal);
  if (!signal.aborted) files.remove(part);
}

/** Lets the access points report until their time ends, the job is cancelled or the emulator stops. */
async function emulate(run: PartRun, progress: Progress): Promise<void> {
  const { part, controller, link, files, signal } = run;
  const agents = agentsOf(part);
  print(`Job ${part.job_number}, part ${part.part} of ${part.parts}: ${agents.length} access points started.`);
  const endsMs = new Map(
    part.emulators.flatMap(({ duration, agents }) =>
      agents.map(({ ap_id }) => [ap_id, progress.startedMs + duration * 1000] as const),
    ),
  );
  const lastEndMs = endOf(part, progress);
  const online = new Set<string>();
  const finished = new AbortController();
  const ended = AbortSignal.any([signal, finished.signal]);
  const loggingIn = logInAll(run, agents, online, ended);

  let reporting: Promise<void> | undefined;
  for (let step = 1; Date.now() < lastEndMs && !ended.aborted; step++) {
    await sleep(Math.max(0, progress.startedMs + nextStep(progress.startedMs) - Date.now()), undefined, {
      signal: ended,
    }).catch(() => {});
    if (ended.aborted) break;
    const nowMs = Date.now();
    progress.sites = progress.sites.map((site) => {
      const stepped = stepSite(site, nowMs);
      for (const { apId, sample } of stepped.samples) {
        if (!online.has(apId) || nowMs > (endsMs.get(apId) ?? 0)) continue;
        // Count a sample when the broker has acknowledged it: a kill loses samples that are still in flight.
        link.publish(`agent/${apId}/data`, { ts: nowMs, payload: sample }, () => progress.samples++);
      }
      return stepped.site;
    });
    if (step % REPORT_EVERY_STEPS !== 0) continue;
    files.save(part, progress);
    const report = { ...summarize(run, progress, online.size), state: "running" };
    const key = keyOf(run, String(reportNumber(nowMs - progress.startedMs, part.parts)));
    // One report at a time, so that none is in flight when the final report is sent.
    reporting ??= controller.report(part.job_number, [report], key).then((outcome) => {
      reporting = undefined;
      // The job was cancelled, and its agents may be deleted.
      if (outcome === "rejected") finished.abort();
    });
  }
  finished.abort();
  // Logins and reports must complete before the final report.
  await Promise.all([loggingIn, reporting]);
  files.save(part, progress);
}

const agentsOf = ({ emulators }: PartMessage) => emulators.flatMap(({ agents }) => agents);

/** Returns when the last access point of a part ends. */
const endOf = ({ emulators }: PartMessage, { startedMs }: Progress): number =>
  startedMs + Math.max(...emulators.map(({ duration }) => duration)) * 1000;

/** Returns the time from the start to the next step. Steps are fixed multiples of `STEP_MS`, so reports do not drift. */
const nextStep = (startedMs: number): number => Math.ceil((Date.now() - startedMs + 1) / STEP_MS) * STEP_MS;

function summarize({ part, emulatorId }: PartRun, { samples, startedMs }: Progress, online: number) {
  const agents = agentsOf(part).length;
  const started_at = new Date(startedMs).toISOString();
  return { part: part.part, parts: part.parts, emulator: emulatorId, agents, online, samples, started_at };
}

const keyOf = ({ part, emulatorId }: PartRun, name: string): string => `${emulatorId} ${part.part} ${name}`;

const FIRST_MESSAGE_EVERY_MS = 5_000;
const SLOWDOWN = 100;
const MAX_MESSAGE_EVERY_MS = 3_600_000;

/**
 * Returns the number of a progress report; reports with the same number become one message of the job.
 *
 * The emulator reports every few seconds and learns from the response whether the job still runs. But a job keeps at most 1,000 unread
 * messages, for a day, and its final message must fit. At first a job gets a message every five seconds, after an hour every forty
 * seconds, and always at least one per hour, so that the job does not expire. That is about 540 on the first day, and fewer later.
 *
 * @param parts the number of parts that share the job's messages
 */
export function reportNumber(elapsedMs: number, parts: number): number {
  const number =
    SLOWDOWN * Math.log1p(elapsedMs / (SLOWDOWN * FIRST_MESSAGE_EVERY_MS)) + elapsedMs / MAX_MESSAGE_EVERY_MS;
  return Math.floor(number / parts);
}

/** Groups the access points by site: devices move from one access point of a site to another. */
export function sitesOf({ job_number, emulators }: PartMessage): Site[] {
  const accessPoints = emulators.flatMap(({ access_point_type, num_devices, agents }) =>
    agents.map(({ ap_id, latitude, longitude, site }) => ({
      site: site ?? `${latitude} ${longitude}`,
      longitude,
      spec: { apId: ap_id, technology: access_point_type, numDevices: num_devices },
    })),
  );
  return [...Map.groupBy(accessPoints, ({ site }) => site).values()].map((group, i) =>
    createSite(
      { longitudeDeg: group[0]?.longitude ?? 0, accessPoints: group.map(({ spec }) => spec) },
      seedOf(Number.parseInt(job_number.slice(0, 8), 16) || 1, i),
    ),
  );
}

async function logInAll(
  { controller }: PartRun,
  agents: readonly { ap_id: string; password: string }[],
  online: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...agents];
  const logInNext = async (): Promise<void> => {
    for (let agent = waiting.shift(); agent !== undefined && !signal.aborted; agent = waiting.shift()) {
      const { ap_id, password } = agent;
      // An agent that was deleted meanwhile stays offline.
      if (await untilFinal(() => controller.logInAgent(ap_id, password), signal)) online.add(ap_id);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_LOGINS }, logInNext));
}

/** Repeats a request until its outcome is final. Returns undefined if the signal fires first. */
async function untilFinal<T>(
  send: () => Promise<T | "retry" | undefined>,
  signal: AbortSignal,
): Promise<T | undefined> {
  while (!signal.aborted) {
    const outcome = await send();
    if (outcome !== undefined && outcome !== "retry") return outcome as T;
    await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
  }
  return undefined;
}
