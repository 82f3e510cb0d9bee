import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import type { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import type { AppLogin } from "./collector-account.ts";

/** The OpenTelemetry collector. Debian and npm have none, so OTELCOL_BIN names the program. */

export const OTEL_COLLECTOR = process.env.OTELCOL_BIN ?? "otelcol";

/** Undefined if it can run here. */
export const otelCollectorIsMissing = (): string | undefined =>
  existsSync(OTEL_COLLECTOR) ? undefined : "OTELCOL_BIN does not name an OpenTelemetry collector";

/** Starts a collector that forwards to the service. Returns the endpoint for those that send to it. */
export async function startOtelCollector(
  supervisor: Supervisor,
  home: string,
  { url, login }: { url: string; login: AppLogin },
): Promise<string> {
  mkdirSync(home, { recursive: true });
  const [config, port] = [join(home, "collector.yaml"), await anyFreePort()];
  writeFileSync(
    config,
    `receivers:
  otlp:
    protocols: { http: { endpoint: 127.0.0.1:${port} } }
exporters:
  otlphttp:
    endpoint: ${url}/api/v1/otlp
    headers: { Authorization: "Basic ${btoa(`${login.name}:${login.key}`)}" }
service:
  telemetry: { metrics: { level: none } }
  pipelines:
    metrics: { receivers: [otlp], exporters: [otlphttp] }
`,
  );
  await supervisor.start({
    name: "otelcol",
    command: OTEL_COLLECTOR,
    args: ["--config", config],
    ready: async (lines) => lines.some((line) => line.includes("Everything is ready")),
    display: () => undefined,
  });
  return `http://127.0.0.1:${port}`;
}
