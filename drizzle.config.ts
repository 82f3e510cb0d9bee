import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "turso",
  schema: [
    "./src/accounts/account-tables.ts",
    "./src/jobs/job-table.ts",
    "./src/broker/outbox-table.ts",
    "./src/emulator/emulation-tables.ts",
    "./src/geo/gazetteer-tables.ts",
    "./src/events/event-tables.ts",
    "./src/alerts/alert-tables.ts",
  ],
  out: "./drizzle",
});
