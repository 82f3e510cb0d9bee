import type { Protocol } from "../../../schemas/metrics.ts";
import { Ago } from "../../components/time.tsx";
import { own } from "../../lib/format.ts";
import type { CurrentStatus } from "./current-status.ts";

const PROTOCOL_NAMES: Record<Protocol, string> = {
  http: "HTTP",
  mqtt: "MQTT",
  emulator: "Emulator",
  prometheus: "Prometheus remote write",
  otlp: "OpenTelemetry (OTLP)",
  influx: "InfluxDB line protocol",
  openwisp: "OpenWISP",
};

/** Shows how the samples of an access point arrive: the protocol, the app that sends them, and the time of the last ones. */
export function Sources({ sources, lastSeen }: Pick<CurrentStatus, "sources" | "lastSeen">) {
  // The service does not store the sources.
  if (sources.length === 0) return lastSeen === null ? "–" : <span class="soft">Unknown until its next report</span>;
  return (
    <ul class="sources" aria-label="Sources of its samples">
      {sources.map(({ protocol, app, last_received }) => (
        <li key={`${protocol} ${app}`}>
          {own(PROTOCOL_NAMES, protocol) ?? protocol}
          {app !== null && (
            <>
              {" "}
              from the app <strong>{app}</strong>
            </>
          )}{" "}
          <span class="soft">
            <Ago ts={last_received} />
          </span>
        </li>
      ))}
    </ul>
  );
}
