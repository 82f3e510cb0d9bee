import { styleText } from "node:util";
import { isEmulated } from "../../schemas/agent.ts";
import { BRIDGE_APP } from "./components/bridge-process.ts";
import { EMULATOR_APP } from "./components/emulator-process.ts";

/** Formats log lines of the Worker for a terminal. */

export interface LogLineOptions {
  /** Whether to show the requests of the bridge, the emulator and its access points too. */
  showsOwnPrograms: boolean;
}

type Fields = Record<string, unknown>;

/** Formats a JSON log line as a short line. Returns undefined to hide the line. Returns lines that are not JSON unchanged. */
export function readableLine(line: string, { showsOwnPrograms }: LogLineOptions): string | undefined {
  const entry = parse(line);
  if (entry === undefined) return line;
  const { time, level, message, ...fields } = entry;
  if (message === "request")
    return showsOwnPrograms || !isOwnRequest(fields) ? request(clock(time), fields) : undefined;
  const { request_id: _, stack, ...shown } = fields;
  const pairs = Object.entries(shown).map(([name, value]) => `${name}=${value}`);
  const text = [clock(time), level, message, ...pairs].join(" ");
  const frames = typeof stack === "string" ? `\n${stack}` : "";
  return level === "error" ? styleText("red", `${text}${frames}`) : styleText("yellow", text);
}

function request(time: string, { method, path, status, duration_ms, caller = "" }: Fields): string {
  const outcome = Number(status) >= 500 ? styleText("red", String(status)) : String(status);
  const by = caller === "" ? "" : ` ${styleText("dim", String(caller))}`;
  return `${time} ${String(method).padEnd(6)} ${path} ${outcome} ${duration_ms} ms${by}`;
}

/** The programs of the stack make several requests per second. Only those that fail are shown. */
function isOwnRequest({ path, status, caller }: Fields): boolean {
  if (Number(status) >= 400) return false;
  const [kind = "", name = ""] = String(caller ?? "").split(":", 2);
  if (kind === "app") return name === BRIDGE_APP || name === EMULATOR_APP;
  return kind === "agent" ? isEmulated(name) : path === "/.well-known/jwks.json";
}

function parse(line: string): Fields | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const entry = JSON.parse(line) as Fields;
    return typeof entry.level === "string" && typeof entry.message === "string" ? entry : undefined;
  } catch {
    return undefined;
  }
}

/** Formats the local time of day. */
const clock = (time: unknown): string => {
  const at = new Date(String(time));
  return Number.isNaN(at.getTime()) ? "" : at.toTimeString().slice(0, 8);
};
