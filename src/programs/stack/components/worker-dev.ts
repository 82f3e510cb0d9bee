import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { UserError } from "../../shared/cli.ts";
import { writeFileAtomically } from "../../shared/system.ts";
import { readableLine } from "../log-line.ts";
import type { Component } from "../supervisor.ts";
import type { WorkerOptions } from "../types.ts";
import { buildDashboard, WRANGLER_CONFIG, WRANGLER_ENVIRONMENT } from "./builds.ts";

/**
 * On a developer's machine anyone can sign up and operate all access points, and webhooks reach programs on it, so that the product can be
 * tried at once. In production sign-up is closed by default, and new users see only access points that they emulate.
 */
export const DEV_DEFAULTS = { SIGNUP: "open", NEW_USERS: "operator", WEBHOOK_NETWORKS: "private" };

/** Runs the Worker in `wrangler dev`, which rebuilds it at every change of the sources. */
export async function devWorkerComponent({ host, port, url, dataDir, env }: WorkerOptions): Promise<Component> {
  // With LOG_REQUESTS=all the user asks for every request.
  const showsOwnPrograms = env.LOG_REQUESTS === "all";
  const pageDir = join(dataDir, "dashboard");
  await buildDashboard(pageDir);
  // In a file that only this user can read, because every user can see the arguments of a process.
  const envFile = join(dataDir, "worker.env");
  writeFileAtomically(envFile, Object.entries(env).map(envLine).join(""));
  return {
    name: "worker",
    command: process.execPath,
    args: [
      fileURLToPath(new URL("worker-dev-server.ts", import.meta.url)),
      ...[WRANGLER_CONFIG, envFile, pageDir, join(dataDir, "worker"), host, String(port)],
    ],
    env: WRANGLER_ENVIRONMENT,
    ready: async () => (await fetch(`${url}/healthz`)).ok,
    display: (line) => {
      if (isChatter(line) || !isWorthShowing(line)) return undefined;
      return process.stdout.isTTY ? readableLine(line, { showsOwnPrograms }) : line;
    },
    graceMs: 2_000,
  };
}

/** Returns a line of an env file. Uses quotes that the value does not contain, and escapes $ so that it is not expanded. */
function envLine([name, value]: [string, string]): string {
  const quote = ["'", '"', "`"].find((candidate) => !value.includes(candidate));
  if (quote === undefined) throw new UserError(`${name} must not contain all three kinds of quotes (' " \`).`);
  return `${name}=${quote}${value.replaceAll("$", "\\$")}${quote}\n`;
}

/** Hides successful health checks and scrapes. */
export const isWorthShowing = (line: string): boolean =>
  !/"path":"\/(?:healthz|readyz|metrics)","status":200/.test(line);

/** Lines of wrangler about itself, and of workerd about clients that disconnected. All other lines are shown. */
const CHATTER = [
  /^\s*$|^─+$|^⎔|^\[wrangler:info\]/,
  /^Using secrets|^Your Worker has|^Binding\s|^env\./,
  /^Cloudflare collects anonymous telemetry|update available|npm (?:install|i) (?:--save-dev )?wrangler/,
  /^✘ \[ERROR\] kj::getCaughtExceptionAsKj\(\) = .*disconnected: |^\s*stack: \S*workerd@/,
];
export const isChatter = (line: string): boolean => CHATTER.some((pattern) => pattern.test(line));
