import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "turso",
  schema: [
    "./src/accounts/tables.ts",
    "./src/jobs/tables.ts",
    "./src/broker/tables.ts",
    "./src/emulator/tables.ts",
    "./src/jobs/parts-table.ts",
  ],
  out: "./drizzle",
});
