import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { UserError } from "../../shared/cli.ts";
import { ROOT, writeFileAtomically } from "../../shared/system.ts";
import { readableLine } from "../log-line.ts";
import type { Component } from "../supervisor.ts";
import type { WorkerOptions } from "../types.ts";
import { buildDashboard } from "./dashboard-build.ts";

/** On a developer's machine everyone can try the product at once; a service that others reach starts closed. */
export const DEV_DEFAULTS = { SIGNUP: "open" };

/** The Worker in `wrangler dev`: rebuilt at every change of the sources. */
export async function devWorkerComponent({ host, port, url, dataDir, env }: WorkerOptions): Promise<Component> {
  // Asked for by name, every request gets its line.
  const showsOwnPrograms = env.LOG_REQUESTS === "all";
  const pageDir = join(dataDir, "dashboard");
  await buildDashboard(pageDir);
  // In a file that only this user can read: arguments show in process lists.
  const envFile = join(dataDir, "worker.env");
  writeFileAtomically(envFile, Object.entries(env).map(envLine).join(""));
  return {
    name: "worker",
    command: process.execPath,
    args: [
      fileURLToPath(new URL("worker-dev-server.ts", import.meta.url)),
      ...[join(ROOT, "wrangler.toml"), envFile, pageDir, join(dataDir, "worker"), host, String(port)],
    ],
    env: WRANGLER_ENVIRONMENT,
    ready: async () => (await fetch(`${url}/healthz`)).ok,
    display: (line) => {
      if (isChatter(line) || !isNews(line)) return undefined;
      return process.stdout.isTTY ? readableLine(line, { showsOwnPrograms }) : line;
    },
    graceMs: 2_000,
  };
}

/** A line of an env file: in the first kind of quotes that the value leaves free, its dollars kept from being expanded. */
function envLine([name, value]: [string, string]): string {
  const quote = ["'", '"', "`"].find((candidate) => !value.includes(candidate));
  if (quote === undefined) throw new UserError(`${name} must not hold all three kinds of quotes.`);
  return `${name}=${quote}${value.replaceAll("$", "\\$")}${quote}\n`;
}

/** Health checks and scrapes that went well are no news to a person. */
export const isNews = (line: string): boolean => !/"path":"\/(?:healthz|readyz|metrics)","status":200/.test(line);

/** What wrangler says of itself, and what workerd says of a client that has gone. The Worker's own lines and all other errors come through. */
const CHATTER = [
  /^\s*$|^─+$|^⎔|^\[wrangler:info\]/,
  /^Using secrets|^Your Worker has|^Binding\s|^env\./,
  /^Cloudflare collects anonymous telemetry|update available|npm (?:install|i) (?:--save-dev )?wrangler/,
  /^✘ \[ERROR\] kj::getCaughtExceptionAsKj\(\) = .*disconnected: |^\s*stack: \S*workerd@/,
];
export const isChatter = (line: string): boolean => CHATTER.some((pattern) => pattern.test(line));

/** Keeps wrangler from calling home, from decorating its output, and from one more file in its user's home at every start. */
export const WRANGLER_ENVIRONMENT = {
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_WRITE_LOGS: "false",
  // It shows and changes what the objects hold, for every caller of the Worker's own port.
  X_LOCAL_EXPLORER: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  NO_COLOR: "1",
};
