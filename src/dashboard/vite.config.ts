import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";
import { largestTowns } from "../programs/gazetteer/rows.ts";

const SERVICE_URL = process.env.SERVICE_URL ?? "http://127.0.0.1:8787";

export default defineConfig({
  plugins: [towns()],
  build: {
    outDir: fileURLToPath(new URL("../../dist/dashboard", import.meta.url)),
    emptyOutDir: true,
    target: "es2023",
    // The content security policy allows nothing inline, so every asset needs its own file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // For development: `npm run page` serves the page and forwards requests to a running service.
  server: {
    proxy: {
      "/api/v1": { target: SERVICE_URL, ws: true },
      "/dashboard.json": SERVICE_URL,
      "/healthz": SERVICE_URL,
      "/readyz": SERVICE_URL,
      "/docs": SERVICE_URL,
    },
  },
});

/** Returns a plugin that generates the module of town names for the map from the gazetteer during the build. */
function towns(): Plugin {
  const name = "virtual:towns";
  return {
    name: "towns",
    resolveId: (id) => (id === name ? `\0${name}` : undefined),
    load: (id) => (id === `\0${name}` ? `export default ${JSON.stringify(JSON.stringify(largestTowns()))}` : undefined),
  };
}
