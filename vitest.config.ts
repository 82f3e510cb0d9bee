import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

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
        // In Node: the scripts, and the whole product from outside, as its users run it.
        test: {
          name: "node",
          sequence: { groupOrder: 2 },
          include: ["test/e2e/**/*.test.ts", "test/scripts/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // Each file runs a whole stack; two at once would only share two cores.
          fileParallelism: false,
        },
      },
    ],
  },
});
