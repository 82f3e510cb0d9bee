import { fileURLToPath } from "node:url";
import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

/** Tests start many processes of Node. Most take about a quarter less processor time if their modules are compiled already. */
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/node", import.meta.url));

const IN_NODE = { testTimeout: 120_000, hookTimeout: 120_000 };
/** They wait for processes more than they compute, also on a machine with two cores. In one group, so that neither core waits. */
const TWO_AT_A_TIME = { sequence: { groupOrder: 2 }, maxWorkers: 2 };

export default defineConfig({
  test: {
    silent: "passed-only",
    reporters: ["default", "./test/support/secret-guard.ts"],
    projects: [
      {
        // Inside workerd, against real stores and a real broker, which the global set-up starts once.
        plugins: [
          cloudflareTest(({ inject }) => ({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: { bindings: inject("workerEnvironment") },
          })),
        ],
        test: {
          name: "workers",
          // One workerd for all files: to load the modules again takes longer than most files' tests. Tests use unique names. Not two
          // at once: each has a publisher, and tests move its clock, which ends the commands of all others in the same database.
          isolate: false,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
          include: ["test/workers/**/*.test.ts"],
          globalSetup: ["./test/support/stores.ts"],
          testTimeout: 30_000,
          hookTimeout: 30_000,
          deps: {
            optimizer: {
              ssr: {
                enabled: true,
                include: [
                  "@clickhouse/client-web",
                  "@hono/zod-validator",
                  "@libsql/client/web",
                  "drizzle-orm",
                  "drizzle-orm/libsql/web",
                  "drizzle-orm/sqlite-core",
                  // Every entry that is used, lest one class exist twice and `instanceof` fail.
                  "hono",
                  "hono/body-limit",
                  "hono/cors",
                  "hono/html",
                  "hono/http-exception",
                  "hono/request-id",
                  "hono/router",
                  "hono/router/trie-router",
                  "hono/secure-headers",
                  "jose",
                  "zod",
                ],
              },
            },
          },
        },
      },
      {
        // Whatever runs in Node: programs, scripts, and modules of the dashboard that need no browser.
        test: { name: "node", include: ["test/node/**/*.test.ts", "test/*.test.ts"], ...IN_NODE, ...TWO_AT_A_TIME },
      },
      {
        // Those that work on the stores themselves.
        test: {
          name: "stores",
          include: ["test/stores/**/*.test.ts"],
          globalSetup: ["./test/support/clickhouse.ts", "./test/support/database-image.ts"],
          ...IN_NODE,
          ...TWO_AT_A_TIME,
        },
      },
      {
        // Running products from outside, as their users have them. Most files share one, and stop none of its components.
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: ["./test/support/product.ts"],
          ...IN_NODE,
          ...TWO_AT_A_TIME,
        },
      },
      {
        // A product whose components die.
        test: {
          name: "faults",
          include: ["test/faults/**/*.test.ts"],
          globalSetup: ["./test/support/database-image.ts"],
          ...IN_NODE,
          ...TWO_AT_A_TIME,
        },
      },
    ],
  },
});
