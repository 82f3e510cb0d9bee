import { defineConfig } from "drizzle-kit";

export default defineConfig({ dialect: "turso", schema: "./src/accounts/tables.ts", out: "./drizzle" });
