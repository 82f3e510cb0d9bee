import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { withoutBacktrace } from "../../../src/programs/stack/components/sqld.ts";
import { isChatter } from "../../../src/programs/stack/components/worker-dev.ts";
import { readableLine } from "../../../src/programs/stack/log-line.ts";

const TIME = new Date(2026, 0, 2, 3, 4, 5);

const shown = (fields: object, showsOwnPrograms = false): string | undefined => {
  const line = readableLine(JSON.stringify({ time: TIME.toISOString(), level: "info", ...fields }), {
    showsOwnPrograms,
  });
  return line === undefined ? undefined : stripVTControlCharacters(line);
};
const request = (fields: object) => ({
  message: "request",
  request_id: "1",
  method: "POST",
  path: "/api/v1/token/",
  status: 200,
  duration_ms: 12,
  ...fields,
});

describe("a log line at a terminal", () => {
  it("shows a request as time, method, path, status, duration and caller", () => {
    const line = shown(request({ method: "GET", path: "/api/v1/users/me", caller: "user:me@example.com" }));
    expect(line).toBe("03:04:05 GET    /api/v1/users/me 200 12 ms user:me@example.com");
  });

  it("shows a request without a caller", () => {
    expect(shown(request({ status: 401 }))).toBe("03:04:05 POST   /api/v1/token/ 401 12 ms");
  });

  it.each([
    { path: "/api/v1/bridge/data", caller: "app:bridge" },
    { path: "/api/v1/callback/emulator", caller: "app:emulator" },
    { caller: "agent:emu-lifi-9a5e492d-0001" },
    { method: "GET", path: "/.well-known/jwks.json" },
  ])("hides a successful request of the stack's own programs: %o", (fields) => {
    expect(shown(request(fields))).toBeUndefined();
    expect(shown(request(fields), true)).toContain(" 200 12 ms");
    expect(shown(request({ ...fields, status: 503 }))).toContain(" 503 12 ms");
  });

  it.each(["app:charts", "agent:my-access-point", "user:bridge"])("shows a request of %s", (caller) => {
    expect(shown(request({ caller }))).toContain(caller);
  });

  it("shows any other entry with its fields, and the stack trace of a bug", () => {
    expect(shown({ level: "warn", message: "login failed", request_id: "1", name: "me@example.com" })).toBe(
      "03:04:05 warn login failed name=me@example.com",
    );
    expect(shown({ level: "error", message: "bug", error: "Error: x", stack: "    at f (worker.js:1)" })).toBe(
      "03:04:05 error bug error=Error: x\n    at f (worker.js:1)",
    );
  });

  it.each(["Listening.", "{not JSON", '{"client":"x"}'])("leaves other output unchanged: %s", (line) => {
    expect(readableLine(line, { showsOwnPrograms: false })).toBe(line);
  });
});

describe("a line of sqld", () => {
  it.each(["stack backtrace:", "   0: rust_begin_unwind", "             at /rustc/std/panicking.rs:1:2"])(
    "is hidden if it belongs to a backtrace: %s",
    (line) => expect(withoutBacktrace(line)).toBeUndefined(),
  );

  it("is shown otherwise", () => {
    const line = "2026-11-15T20:37:03Z ERROR libsql_server::error: HTTP API: 401 Unauthorized";
    expect(withoutBacktrace(line)).toBe(line);
  });
});

describe("a line of wrangler", () => {
  it.each([
    "⎔ Starting local server...",
    "Cloudflare collects anonymous telemetry about your usage of Wrangler.",
    "The version of Wrangler you are using is out-of-date; update available 4.158.0",
    "✘ [ERROR] kj::getCaughtExceptionAsKj() = ffi.rs:159: disconnected: write(): Broken pipe (os error 32)",
    "  stack: /controller/node_modules/workerd@54db48b",
  ])("is hidden if it is not about the Worker: %s", (line) => expect(isChatter(line)).toBe(true));

  it.each(["✘ [ERROR] Build failed with 1 error:", '{"level":"error","message":"bug"}'])("is shown: %s", (line) =>
    expect(isChatter(line)).toBe(false),
  );
});
