import { type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import type { Config } from "../env.ts";
import { QuotaExceeded } from "../lib/errors.ts";

/**
 * Limits for one account and for all accounts together. The statement that stores a job also checks the quotas, so that concurrent
 * requests cannot exceed them.
 */
export interface Quotas {
  /** Running emulated access points. */
  emulatedPerAccount: number;
  emulatedTotal: number;
  /** Registered emulated access points, running or ended. */
  keptPerAccount: number;
  keptTotal: number;
  openJobsPerAccount: number;
  openJobsTotal: number;
  /** Live jobs that end more than 24 hours from now. */
  longLiveJobsPerAccount: number;
  longLiveJobsTotal: number;
}

/** For components that store no jobs on behalf of callers. */
export const NO_QUOTAS: Quotas = {
  emulatedPerAccount: Number.MAX_SAFE_INTEGER,
  emulatedTotal: Number.MAX_SAFE_INTEGER,
  keptPerAccount: Number.MAX_SAFE_INTEGER,
  keptTotal: Number.MAX_SAFE_INTEGER,
  openJobsPerAccount: Number.MAX_SAFE_INTEGER,
  openJobsTotal: Number.MAX_SAFE_INTEGER,
  longLiveJobsPerAccount: Number.MAX_SAFE_INTEGER,
  longLiveJobsTotal: Number.MAX_SAFE_INTEGER,
};

export const quotasOf = (config: Config): Quotas => ({
  emulatedPerAccount: config.EMULATED_PER_ACCOUNT,
  emulatedTotal: config.EMULATED_TOTAL,
  keptPerAccount: config.EMULATED_KEPT_PER_ACCOUNT,
  keptTotal: config.EMULATED_KEPT_TOTAL,
  openJobsPerAccount: config.OPEN_JOBS_PER_ACCOUNT,
  openJobsTotal: config.OPEN_JOBS_TOTAL,
  longLiveJobsPerAccount: config.LONG_LIVE_JOBS_PER_ACCOUNT,
  longLiveJobsTotal: config.LONG_LIVE_JOBS_TOTAL,
});

/** The amounts that a request would add. */
export interface Demand {
  ownerId: string;
  nowMs: number;
  jobs: number;
  /** When a live job ends. */
  endsMs?: number | undefined;
  emulated?: number | undefined;
}

/** Equals the condition of the partial index `jobs_open`: SQLite uses that index only for this exact text. */
export const IS_OPEN = sql.raw("state in ('queued', 'running')");
const LONG_MS = 24 * 3_600_000;
const RETRY_S = 60;
const RETRY_LONG_S = 3_600;

interface Limit {
  /** An SQL expression for the amount in use. */
  used: SQL;
  demanded: number;
  limit: number;
  what: string;
  scope: "per account" | "in total";
  setting: keyof Config;
  retryAfterS: number;
}

/** Returns the limits that apply to a demand. */
function limitsFor({ ownerId, nowMs, jobs, endsMs = 0, emulated = 0 }: Demand, quotas: Quotas): Limit[] {
  const ofOwner = sql`owner_id = ${ownerId} and`;
  const open = { what: "open jobs", demanded: jobs, retryAfterS: RETRY_S };
  const long = {
    what: "live jobs that end more than 24 hours from now",
    demanded: endsMs > nowMs + LONG_MS ? jobs : 0,
    retryAfterS: RETRY_LONG_S,
  };
  const running = { what: "running emulated access points", demanded: emulated, retryAfterS: RETRY_S };
  // Ended access points stay registered for a day: without this limit, short emulations could fill the database.
  const kept = {
    what: "registered emulated access points (running or ended)",
    demanded: emulated,
    retryAfterS: RETRY_LONG_S,
  };
  const keptOf = (owner: SQL) =>
    sql`(select coalesce(sum(access_points), 0) from emulations where ${owner} removed_at is null)`;
  const account = { scope: "per account" } as const;
  const total = { scope: "in total" } as const;
  const openJobs = (owner: SQL) => sql`(select count(*) from jobs where ${owner} ${IS_OPEN})`;
  const longJobs = (owner: SQL) =>
    sql`(select count(*) from jobs where ${owner} ${IS_OPEN} and ends_at > ${nowMs + LONG_MS})`;
  // The job's state is current. `ended_at` follows within a minute; it only limits the number of rows to read.
  const runningOf = (owner: SQL) => sql`(select coalesce(sum(access_points), 0) from emulations
    where ${owner} ended_at is null
      and exists (select 1 from jobs where jobs.job_number = emulations.job_number and ${IS_OPEN}))`;
  const none = sql``;
  const limits: Limit[] = [
    {
      ...running,
      ...account,
      used: runningOf(ofOwner),
      limit: quotas.emulatedPerAccount,
      setting: "EMULATED_PER_ACCOUNT",
    },
    {
      ...running,
      ...total,
      used: runningOf(none),
      limit: quotas.emulatedTotal,
      setting: "EMULATED_TOTAL",
    },
    {
      ...kept,
      ...account,
      used: keptOf(ofOwner),
      limit: quotas.keptPerAccount,
      setting: "EMULATED_KEPT_PER_ACCOUNT",
    },
    {
      ...kept,
      ...total,
      used: keptOf(none),
      limit: quotas.keptTotal,
      setting: "EMULATED_KEPT_TOTAL",
    },
    {
      ...long,
      ...account,
      used: longJobs(ofOwner),
      limit: quotas.longLiveJobsPerAccount,
      setting: "LONG_LIVE_JOBS_PER_ACCOUNT",
    },
    {
      ...long,
      ...total,
      used: longJobs(none),
      limit: quotas.longLiveJobsTotal,
      setting: "LONG_LIVE_JOBS_TOTAL",
    },
    {
      ...open,
      ...account,
      used: openJobs(ofOwner),
      limit: quotas.openJobsPerAccount,
      setting: "OPEN_JOBS_PER_ACCOUNT",
    },
    {
      ...open,
      ...total,
      used: openJobs(none),
      limit: quotas.openJobsTotal,
      setting: "OPEN_JOBS_TOTAL",
    },
  ];
  return limits.filter(({ demanded, limit }) => demanded > 0 && limit < Number.MAX_SAFE_INTEGER);
}

/** Returns the condition that the quotas have room for a demand, for the statement that stores the jobs. */
export function hasRoom(demand: Demand, quotas: Quotas): SQL {
  const conditions = limitsFor(demand, quotas).map(
    ({ used, demanded, limit }) => sql`${used} + ${demanded} <= ${limit}`,
  );
  return sql.join([sql`true`, ...conditions], sql` and `);
}

/**
 * Returns the statement that reads the usage for `exceededQuota`. Run it in the same batch, after the statement that stores the jobs. It
 * counts only if nothing was stored, so that the usage is counted once for an accepted job.
 */
export const usedUnless = (isStored: SQL, demand: Demand, quotas: Quotas): SQL =>
  sql`select json_array(${sql.join(
    limitsFor(demand, quotas).map(({ used }) => used),
    sql`, `,
  )}) as used where not ${isStored}`;

const Used = z
  .array(z.object({ used: z.string() }))
  .transform((rows) => z.array(z.number()).parse(JSON.parse(rows[0]?.used ?? "[]")));

/** Returns the error for the first quota that the demand exceeds, if any. */
export function exceededQuota(demand: Demand, quotas: Quotas, rows: unknown): QuotaExceeded | undefined {
  const used = Used.parse(rows);
  for (const [i, quota] of limitsFor(demand, quotas).entries()) {
    if ((used[i] ?? 0) + quota.demanded <= quota.limit) continue;
    // A demand over the limit can never succeed, so it gets no time to retry.
    return new QuotaExceeded(quota, quota.demanded > quota.limit ? undefined : quota.retryAfterS);
  }
  return undefined;
}
