import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import { bundleBytes } from "../usage.ts";
import { bareBuildDir, buildDirOf, runSecondWorkerd } from "../workerd.ts";
import { generateLoad, type LoadRequest } from "../workload.ts";
import { type BenchContext, byRate, CONNECTIONS, GET_ROOT, inTurns, latencies } from "./suite.ts";

/** The cost of every request: the frame of the service next to a Worker without one. */

const STARTS = 7;
const PACE_PER_SECOND = 1_500;
const KIB = 1024;

export async function benchService(context: BenchContext): Promise<void> {
  const { product, bareUrl, seconds, report } = context;
  const { token } = await makeUser(product.dataDir, "bench-service@example.com");
  const me: LoadRequest = { method: "GET", path: "/api/v1/users/me", token };
  const load = (url: string, request: LoadRequest, pacePerSecond?: number) => () =>
    generateLoad({
      url,
      seconds,
      connections: CONNECTIONS,
      next: () => request,
      ...(pacePerSecond !== undefined && { pacePerSecond }),
    });
  const routes = {
    "bare Hono route": load(bareUrl, GET_ROOT),
    "GET /healthz": load(product.url, { method: "GET", path: "/healthz" }),
    "GET /api/v1/users/me": load(product.url, me),
  };
  const rates = await inTurns(routes, byRate);
  const bareRate = rates["bare Hono route"].perSecond;
  for (const [what, result] of Object.entries(rates)) {
    const wanted = what.endsWith("users/me") && { wanted: "at least 0.6" };
    const ratio = { of: "bare Hono", value: result.perSecond / bareRate, ...wanted };
    report.add(what, result.perSecond, "/s", { details: latencies(result), ...(what.startsWith("GET") && { ratio }) });
  }

  const atPace = { bare: load(bareUrl, GET_ROOT, PACE_PER_SECOND), ours: load(product.url, me, PACE_PER_SECOND) };
  const { bare, ours } = await inTurns(atPace, ({ p99Ms }) => p99Ms);
  report.add(`users/me at ${PACE_PER_SECOND}/s`, ours.p99Ms, "ms (p99)", {
    ratio: { of: "bare Hono at that pace", value: ours.p99Ms / bare.p99Ms, wanted: "at most 2" },
    details: { ...latencies(ours), "reached per second": ours.perSecond, "p99 ms of bare": bare.p99Ms },
  });
  await coldStarts(context);
  const bytes = bundleBytes(buildDirOf(product));
  report.add("the Worker's bundle, gzip", bytes / KIB, "KiB (at most 250)");
}

/** Measures the time from the start of workerd to its first response, as after a restart. */
async function coldStarts({ product, folder, report }: BenchContext): Promise<void> {
  print("Starting workerd repeatedly.");
  const start = (buildDir: string) => async (): Promise<number> => {
    const { startedInMs, end } = await runSecondWorkerd(product, { folder, buildDir });
    await end();
    return startedInMs;
  };
  const starts = { bare: start(bareBuildDir(folder)), ours: start(buildDirOf(product)) };
  const { bare, ours } = await inTurns(starts, (ms) => ms, STARTS);
  report.add("cold start of bare workerd until the first response", bare, "ms");
  report.add("cold start of the Worker until the first response", ours, "ms", {
    ratio: { of: "bare workerd", value: ours / bare, wanted: "at most 2" },
  });
}
