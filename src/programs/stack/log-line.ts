import { styleText } from "node:util";
import { isEmulated } from "../../accounts/agent-names.ts";
import { BRIDGE_APP } from "./components/bridge-process.ts";
import { EMULATOR_APP } from "./components/emulator-process.ts";

/** Log lines of the Worker as a person at a terminal reads them. */

export interface LogLineOptions {
  /** Also shows the requests of the bridge, the emulator and its access points. */
  showsOwnPrograms: boolean;
}

type Fields = Record<string, unknown>;

/** Turns one JSON log line into a short line. Returns nothing for a line to hide; other lines stay as they are. */
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

/** The programs that the stack runs make several requests a second. Their failures are still worth a line. */
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

/** The time of day on this machine. */
const clock = (time: unknown): string => {
  const at = new Date(String(time));
  return Number.isNaN(at.getTime()) ? "" : at.toTimeString().slice(0, 8);
};
