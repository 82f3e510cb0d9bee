import { setTimeout as sleep } from "node:timers/promises";
import { InfluxDB, Point } from "@influxdata/influxdb-client";
import { OTLPMetricExporter as JsonExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter as ProtobufExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { AggregationTemporality, DataPointType, type ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { Target } from "../client.ts";
import { createWorkload, type Workload } from "../workload.ts";
import { type AppLogin, createCollector } from "./collector-account.ts";
import { PointOracle } from "./point-oracle.ts";

/** Client libraries of other systems send points for agents, and repeat a request until the service acknowledges it. */

export type ClientKind = "OTLP JSON" | "OTLP protobuf" | "InfluxDB";

const AGENTS = 4;
const POINTS_PER_REQUEST = 500;
/** Few enough that the journals do not fill while ClickHouse restarts on a slow machine. */
const PAUSE_MS = 4_000;
const REPEAT_MS = 200;
/** Longer than a component takes to restart. */
const TIMEOUT_MS = 10_000;
const METRICS: Record<ClientKind, string> = { "OTLP JSON": "n", "OTLP protobuf": "n", InfluxDB: "collected.n" };

/** The value of every point follows from its time. */
const valueAt = (tsMs: number): number => tsMs % 1_000;

/** Sends points of one agent. Throws unless all were acknowledged. */
type Send = (apId: string, times: readonly number[]) => Promise<void>;

export async function startClient(target: Target, kind: ClientKind): Promise<Workload> {
  const { prefix, apIds, login } = await createCollector(target, kind, AGENTS);
  const send = SENDERS[kind](target.client.url, login);
  const oracle = new PointOracle(target, prefix);
  const stop = new AbortController();
  const senders = apIds.map(async (apId) => {
    for (let nextMs = Date.now() - 1_000_000; !stop.signal.aborted; await sleep(PAUSE_MS)) {
      const times = Array.from({ length: POINTS_PER_REQUEST }, (_, i) => nextMs + i);
      nextMs += times.length;
      // Not ended by the stop: the outcome of every point must be known.
      for (let isSent = false; !isSent; ) {
        isSent = await send(apId, times).then(
          () => true,
          () => false,
        );
        if (!isSent) await sleep(REPEAT_MS);
      }
      for (const tsMs of times) oracle.record(apId, METRICS[kind], tsMs, valueAt(tsMs));
    }
  });
  return createWorkload(kind, stop, senders, {
    acknowledged: () => oracle.recorded,
    settle: () => oracle.compare(),
  });
}

const SENDERS: Record<ClientKind, (url: string, login: AppLogin) => Send> = {
  "OTLP JSON": (url, login) => otlpSender(new JsonExporter(otlpOptions(url, login))),
  "OTLP protobuf": (url, login) => otlpSender(new ProtobufExporter(otlpOptions(url, login))),
  InfluxDB: influxSender,
};

const otlpOptions = (url: string, { name, key }: AppLogin) => ({
  url: `${url}/api/v1/otlp/v1/metrics`,
  headers: { Authorization: `Basic ${btoa(`${name}:${key}`)}` },
  timeoutMillis: TIMEOUT_MS,
});

function otlpSender(exporter: Pick<JsonExporter, "export">): Send {
  return async (apId, times) => {
    const dataPoints = times.map((tsMs) => {
      const time: [number, number] = [Math.floor(tsMs / 1_000), (tsMs % 1_000) * 1_000_000];
      return { startTime: time, endTime: time, attributes: {}, value: valueAt(tsMs) };
    });
    const metrics: ResourceMetrics = {
      resource: resourceFromAttributes({ "service.instance.id": apId }),
      scopeMetrics: [
        {
          scope: { name: "faults" },
          metrics: [
            {
              descriptor: { name: "n", description: "", unit: "", valueType: 1 },
              aggregationTemporality: AggregationTemporality.CUMULATIVE,
              dataPointType: DataPointType.GAUGE,
              dataPoints,
            },
          ],
        },
      ],
    };
    await new Promise<void>((resolve, reject) => {
      exporter.export(metrics, ({ code, error }) => (code === 0 ? resolve() : reject(error ?? new Error("failed"))));
    });
  };
}

function influxSender(url: string, { name, key }: AppLogin): Send {
  const influx = new InfluxDB({ url: `${url}/api/v1/influx`, token: `${name}:${key}`, timeout: TIMEOUT_MS });
  return async (apId, times) => {
    let written = 0;
    const api = influx.getWriteApi("any", "any", "ms", {
      // Only `close` sends the batch, and waits for the response.
      batchSize: times.length + 1,
      maxRetries: 0,
      flushInterval: 0,
      // Otherwise the client only logs a failure.
      writeSuccess: (sent) => {
        written += sent.length;
      },
      writeFailed: () => Promise.resolve(),
    });
    api.writePoints(
      times.map((tsMs) => new Point("collected").tag("host", apId).floatField("n", valueAt(tsMs)).timestamp(tsMs)),
    );
    await api.close();
    if (written < times.length) throw new Error("The points were not acknowledged");
  };
}
