import { join } from "node:path";
import { print } from "../../../src/programs/shared/cli.ts";
import { startupBytes } from "../usage.ts";
import { startWorkerd } from "../workerd.ts";
import { type BenchContext, inTurns, load, loadBareHono, ME } from "./suite.ts";

/** The cost of every request: the frame of the service next to a Worker without one. */

const STARTS = 7;
const PACE_PER_SECOND = 1_500;
const KIB = 1024;

export async function benchService(context: BenchContext): Promise<void> {
  const { product, user, folder, bareBuildDir, report } = context;
  const me = { path: ME, token: user.token };
  const { bare, health, own } = await inTurns(
    {
      bare: () => loadBareHono(context),
      health: () => load(context, { path: "/healthz" }),
      own: () => load(context, me),
    },
    ({ perSecond }) => perSecond,
  );
  const ofBare = (rate: number, wanted?: string) => ({ of: "bare Hono", value: rate / bare.perSecond, wanted });
  report.add("bare Hono route", bare.perSecond, "/s", bare.details);
  report.add("GET /healthz", health.perSecond, "/s", health.details, ofBare(health.perSecond));
  report.add(`GET ${ME}`, own.perSecond, "/s", own.details, ofBare(own.perSecond, "at least 0.6"));

  const pace = { pacePerSecond: PACE_PER_SECOND };
  const paced = await inTurns(
    { bare: () => loadBareHono(context, pace), own: () => load(context, me, pace) },
    ({ p99Ms }) => p99Ms,
  );
  const [bareMs, ms] = [paced.bare.p99Ms, paced.own.p99Ms];
  const details = { ...paced.own.details, "reached per second": paced.own.perSecond, "p99 ms of bare": bareMs };
  const ratio = { of: "bare Hono at that pace", value: ms / bareMs, wanted: "at most 2" };
  report.add(`users/me at ${PACE_PER_SECOND}/s`, ms, "ms (p99)", details, ratio);

  print("Starting workerd repeatedly.");
  /** From the start of workerd to its first response, as after a restart. */
  const startMs = async (buildDir: string): Promise<number> => {
    const { startedInMs, end } = await startWorkerd(product, buildDir, folder);
    await end();
    return startedInMs;
  };
  const buildDir = join(product.dataDir, "build");
  const starts = await inTurns(
    { bare: () => startMs(bareBuildDir), own: () => startMs(buildDir) },
    (tookMs) => tookMs,
    STARTS,
  );
  const ofBareStart = { of: "bare workerd", value: starts.own / starts.bare, wanted: "at most 2" };
  report.add("cold start of bare workerd until the first response", starts.bare, "ms");
  report.add("cold start of the Worker until the first response", starts.own, "ms", {}, ofBareStart);
  report.add("what the Worker loads at its start, gzip", startupBytes(buildDir) / KIB, "KiB (at most 250)");
}
