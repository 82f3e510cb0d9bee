import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import { median } from "../stats.ts";
import { bundleBytes } from "../usage.ts";
import { bareBuildDir, buildDirOf, runSecondWorkerd } from "../workerd.ts";
import { generateLoad, type LoadOptions, type LoadRequest, type LoadResult } from "../workload.ts";
import type { BenchContext } from "./context.ts";
import { latencies } from "./samples.ts";

/** What every request costs, whatever it asks for: the frame of the service next to Workers that have none, and to its stores. */

const CONNECTIONS = 32;
const ROUNDS = 3;
const STARTS = 7;
const PACE_PER_SECOND = 1_500;
const KIB = 1024;

/** A route of Hono with nothing behind it: requests a second. */
export async function measureBareHono({ bareUrl, seconds, report }: BenchContext): Promise<number> {
  const result = await generateLoad({ url: bareUrl, seconds, connections: CONNECTIONS, next: () => GET_ROOT });
  report.add({ what: "bare Hono route", value: result.perSecond, unit: "/s", details: latencies(result) });
  return result.perSecond;
}

const GET_ROOT: LoadRequest = { method: "GET", path: "/" };

export async function benchService(context: BenchContext): Promise<void> {
  const { product, bareUrl, seconds, report } = context;
  const { token } = await makeUser(product.dataDir, "bench-service@example.com");
  const me: LoadRequest = { method: "GET", path: "/api/v1/users/me", token };
  const libsql = new URL(product.urls.libsql ?? "");
  const targets = {
    "bare Worker": { url: bareUrl, request: { method: "GET", path: "/worker" } },
    "bare Hono route": { url: bareUrl, request: GET_ROOT },
    "GET /healthz": { url: product.url, request: { method: "GET", path: "/healthz" } },
    "GET /api/v1/users/me": { url: product.url, request: me },
    "libSQL itself: SELECT 1": { url: libsql.origin, request: { ...SELECT_OF_LIBSQL, token: tokenIn(libsql) } },
    "ClickHouse itself: SELECT 1": {
      url: product.urls.clickhouse ?? "",
      request: { method: "GET", path: "/?query=SELECT%201" },
    },
  } satisfies Record<string, { url: string; request: LoadRequest }>;

  const rates = await inTurns(targets, ({ url, request }) =>
    generateLoad({ url, seconds, connections: CONNECTIONS, next: () => request }),
  );
  const rateOf = (what: keyof typeof targets): number => median(rates[what], byRate).perSecond;
  for (const [what, results] of Object.entries(rates)) {
    const result = median(results, byRate);
    const isOurs = what.startsWith("GET");
    report.add({
      what,
      value: result.perSecond,
      unit: "/s",
      ...(isOurs && {
        ratio: {
          of: "bare Hono",
          value: result.perSecond / rateOf("bare Hono route"),
          ...(what.endsWith("users/me") && { wanted: "at least 0.6" }),
        },
      }),
      details: latencies(result),
    });
  }

  const paced: Omit<LoadOptions, "url" | "next"> = {
    seconds,
    connections: CONNECTIONS,
    pacePerSecond: PACE_PER_SECOND,
  };
  const atPace = await inTurns(
    { bare: { url: bareUrl, request: GET_ROOT }, me: { url: product.url, request: me } },
    ({ url, request }) => generateLoad({ ...paced, url, next: () => request }),
  );
  const byP99 = ({ p99Ms }: LoadResult): number => p99Ms;
  const bareAtPace = median(atPace.bare, byP99);
  const meAtPace = median(atPace.me, byP99);
  report.add({
    what: `users/me at ${PACE_PER_SECOND}/s`,
    value: meAtPace.p99Ms,
    unit: "ms (p99)",
    ratio: { of: "bare Hono at that pace", value: meAtPace.p99Ms / bareAtPace.p99Ms, wanted: "at most 2" },
    details: { ...latencies(meAtPace), "reached per second": meAtPace.perSecond, "p99 ms of bare": bareAtPace.p99Ms },
  });
  await coldStarts(context);
  const bytes = bundleBytes(buildDirOf(product));
  report.add({ what: "the Worker's bundle, gzip", value: bytes / KIB, unit: "KiB (at most 250)" });
}

/** As the service's own client asks it, over HTTP. */
const SELECT_OF_LIBSQL: LoadRequest = {
  method: "POST",
  path: "/v2/pipeline",
  body: JSON.stringify({ requests: [{ type: "execute", stmt: { sql: "SELECT 1" } }, { type: "close" }] }),
};

const tokenIn = ({ searchParams }: URL): string => searchParams.get("authToken") ?? "";

const byRate = ({ perSecond }: LoadResult): number => perSecond;

/** Measures each in turn, several times over, so that whatever else the machine does meets all of them. */
async function inTurns<Name extends string, T>(
  targets: Record<Name, T>,
  measure: (target: T) => Promise<LoadResult>,
): Promise<Record<Name, LoadResult[]>> {
  const results = Object.fromEntries(Object.keys(targets).map((name) => [name, []])) as unknown as Record<
    Name,
    LoadResult[]
  >;
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, target] of Object.entries(targets) as [Name, T][]) results[name].push(await measure(target));
  }
  return results;
}

/** From nothing to the first answer: what Cloudflare does where no Worker runs yet, and a restart here. */
async function coldStarts({ product, folder, report }: BenchContext): Promise<void> {
  print("Starting workerd anew, again and again.");
  const tookMs = { bare: [] as number[], ours: [] as number[] };
  for (let i = 0; i < STARTS; i++) {
    for (const [name, buildDir] of [
      ["bare", bareBuildDir(folder)],
      ["ours", buildDirOf(product)],
    ] as const) {
      const twin = await runSecondWorkerd(product, { folder, buildDir });
      tookMs[name].push(twin.startedInMs);
      await twin.end();
    }
  }
  const self = (ms: number): number => ms;
  const [bareMs, oursMs] = [median(tookMs.bare, self), median(tookMs.ours, self)];
  report.add({ what: "cold start of bare workerd: until the first answer", value: bareMs, unit: "ms" });
  report.add({
    what: "cold start of the Worker: until the first answer",
    value: oursMs,
    unit: "ms",
    ratio: { of: "bare workerd", value: oursMs / bareMs, wanted: "at most 2" },
  });
}
