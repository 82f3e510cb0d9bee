import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";
import { largestTowns } from "../programs/gazetteer/rows.ts";

const SERVICE = process.env.SERVICE_URL ?? "http://127.0.0.1:8787";

export default defineConfig({
  plugins: [towns()],
  build: {
    outDir: fileURLToPath(new URL("../../dist/dashboard", import.meta.url)),
    emptyOutDir: true,
    target: "es2023",
    // Every file on its own: the page's policy allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // For work on the page: `npm run page` beside a service that runs.
  server: {
    proxy: {
      "/api/v1": { target: SERVICE, ws: true },
      "/dashboard.json": SERVICE,
      "/healthz": SERVICE,
      "/readyz": SERVICE,
      "/docs": SERVICE,
    },
  },
});

/** Names for the map, made of the gazetteer's data when the page is built. */
function towns(): Plugin {
  const name = "virtual:towns";
  return {
    name: "towns",
    resolveId: (id) => (id === name ? `\0${name}` : undefined),
    load: (id) => (id === `\0${name}` ? `export default ${JSON.stringify(JSON.stringify(largestTowns()))}` : undefined),
  };
}
