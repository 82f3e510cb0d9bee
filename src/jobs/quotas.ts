import { type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import type { Config } from "../env.ts";
import { QuotaExceeded } from "../lib/errors.ts";

/**
 * How much an account, and all accounts together, may have at one time. The statement that stores something new also checks the quota, so
 * that of several requests at once only those pass that there is room for.
 */
export interface Quotas {
  emulatedPerAccount: number;
  emulatedTotal: number;
  keptPerAccount: number;
  keptTotal: number;
  openJobsPerAccount: number;
  openJobsTotal: number;
  longLiveJobsPerAccount: number;
  longLiveJobsTotal: number;
}

/** For those that store no jobs of callers. */
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

/** What a request asks for. */
export interface Demand {
  ownerId: string;
  nowMs: number;
  jobs: number;
  /** When a live job ends. */
  endsMs?: number | undefined;
  emulated?: number | undefined;
}

/** As the partial index `jobs_open` says it: SQLite uses that index only for this text. */
export const IS_OPEN = sql.raw("state in ('queued', 'running')");
const LONG_MS = 24 * 3_600_000;
const RETRY_S = 60;
const RETRY_LONG_S = 3_600;

interface Limit {
  /** A number out of the database: what is there already. */
  used: SQL;
  demanded: number;
  limit: number;
  what: string;
  scope: "per account" | "in total";
  setting: keyof Config;
  retryAfterS: number;
}

/** The limits that apply to a demand. */
function limitsFor({ ownerId, nowMs, jobs, endsMs = 0, emulated = 0 }: Demand, quotas: Quotas): Limit[] {
  const ofOwner = sql`owner_id = ${ownerId} and`;
  const open = { what: "open jobs", demanded: jobs, retryAfterS: RETRY_S };
  const long = {
    what: "live jobs that end more than 24 hours from now",
    demanded: endsMs > nowMs + LONG_MS ? jobs : 0,
    retryAfterS: RETRY_LONG_S,
  };
  const running = { what: "running emulated access points", demanded: emulated, retryAfterS: RETRY_S };
  // Ended ones stay registered for a day: without this, short emulations could fill the database.
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
  // By the job's state, which is right at once; `ended_at` follows within a minute and keeps the number of rows small.
  const runningOf = (owner: SQL) => sql`(select coalesce(sum(access_points), 0) from emulations
    where ${owner} ended_at is null
      and exists (select 1 from jobs where jobs.job_number = emulations.job_number and ${IS_OPEN}))`;
  const none = sql``;
  const limits: Limit[] = [
    {
      ...{ ...running, ...account, used: runningOf(ofOwner) },
      ...{ limit: quotas.emulatedPerAccount, setting: "EMULATED_PER_ACCOUNT" },
    },
    {
      ...{ ...running, ...total, used: runningOf(none) },
      ...{ limit: quotas.emulatedTotal, setting: "EMULATED_TOTAL" },
    },
    {
      ...{ ...kept, ...account, used: keptOf(ofOwner) },
      ...{ limit: quotas.keptPerAccount, setting: "EMULATED_KEPT_PER_ACCOUNT" },
    },
    {
      ...{ ...kept, ...total, used: keptOf(none) },
      ...{ limit: quotas.keptTotal, setting: "EMULATED_KEPT_TOTAL" },
    },
    {
      ...{ ...long, ...account, used: longJobs(ofOwner) },
      ...{ limit: quotas.longLiveJobsPerAccount, setting: "LONG_LIVE_JOBS_PER_ACCOUNT" },
    },
    {
      ...{ ...long, ...total, used: longJobs(none) },
      ...{ limit: quotas.longLiveJobsTotal, setting: "LONG_LIVE_JOBS_TOTAL" },
    },
    {
      ...{ ...open, ...account, used: openJobs(ofOwner) },
      ...{ limit: quotas.openJobsPerAccount, setting: "OPEN_JOBS_PER_ACCOUNT" },
    },
    {
      ...{ ...open, ...total, used: openJobs(none) },
      ...{ limit: quotas.openJobsTotal, setting: "OPEN_JOBS_TOTAL" },
    },
  ];
  return limits.filter(({ demanded, limit }) => demanded > 0 && limit < Number.MAX_SAFE_INTEGER);
}

/** A condition for the statement that stores what is demanded. */
export function hasRoom(demand: Demand, quotas: Quotas): SQL {
  const conditions = limitsFor(demand, quotas).map(
    ({ used, demanded, limit }) => sql`${used} + ${demanded} <= ${limit}`,
  );
  return sql.join([sql`true`, ...conditions], sql` and `);
}

/**
 * What is in use, for `exceededQuota`: a statement for the same batch as the one that stores, behind it. It counts only if that one
 * stored nothing, so that a job that passes is counted for once.
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
    // A request that is too large by itself never passes.
    return new QuotaExceeded(quota, quota.demanded > quota.limit ? undefined : quota.retryAfterS);
  }
  return undefined;
}
