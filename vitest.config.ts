import { fileURLToPath } from "node:url";
import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

/** Tests start many Node processes. Most need about a quarter less processor time with cached compiled modules. */
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/node", import.meta.url));

const IN_NODE = { testTimeout: 120_000, hookTimeout: 120_000 };
/** These tests mostly wait for processes, so two run at once even on two cores. One group for all of them keeps both workers busy. */
const TWO_AT_A_TIME = { sequence: { groupOrder: 2 }, maxWorkers: 2 };

export default defineConfig({
  test: {
    silent: "passed-only",
    reporters: ["default", "./test/support/secret-guard.ts"],
    projects: [
      {
        // Tests inside workerd, with real stores and a real broker. The global setup starts these once.
        plugins: [
          cloudflareTest(({ inject }) => ({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: { bindings: inject("workerEnvironment") },
          })),
        ],
        test: {
          name: "workers",
          // One workerd for all files, because loading the modules takes longer than the tests of most files. Tests use unique names. Not
          // two workers: each has a publisher, and tests move its clock, which expires the commands of all others in the same database.
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
                  "@libsql/client/http",
                  "drizzle-orm",
                  "drizzle-orm/libsql/http",
                  "drizzle-orm/sqlite-core",
                  // List every entry point that is used. Otherwise a class exists twice and `instanceof` fails.
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
                  "standardwebhooks",
                  "zod",
                ],
              },
            },
          },
        },
      },
      {
        // Code that runs in Node: programs, scripts, and modules of the dashboard that need no browser.
        test: { name: "node", include: ["test/node/**/*.test.ts", "test/*.test.ts"], ...IN_NODE, ...TWO_AT_A_TIME },
      },
      {
        // Tests that work on the stores directly.
        test: {
          name: "stores",
          include: ["test/stores/**/*.test.ts"],
          globalSetup: ["./test/support/clickhouse.ts", "./test/support/database-image.ts"],
          ...IN_NODE,
          ...TWO_AT_A_TIME,
        },
      },
      {
        // A running product, tested from outside. Most files share one, and must not stop its components.
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: ["./test/support/product.ts"],
          ...IN_NODE,
          ...TWO_AT_A_TIME,
        },
      },
      {
        // A product whose components are killed.
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
