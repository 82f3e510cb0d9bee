import { setTimeout as sleep } from "node:timers/promises";
import { InfluxDB, Point } from "@influxdata/influxdb-client";
import { OTLPMetricExporter as JsonExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter as ProtobufExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { AggregationTemporality, DataPointType, type ResourceMetrics } from "@opentelemetry/sdk-metrics";
import { makeAgents, makeUser } from "../accounts.ts";
import { selectRows, withClickHouse } from "../clickhouse.ts";
import type { Target } from "../client.ts";
import { TelemetryOracle } from "../telemetry-oracle.ts";
import { createWorkload, type Workload } from "../workload.ts";

/** Unmodified clients of other systems send points for agents, and repeat a request until the service acknowledges it. */

export type CollectorKind = "OTLP JSON" | "OTLP protobuf" | "InfluxDB";

const AGENTS = 4;
const POINTS_PER_REQUEST = 500;
const REPEAT_MS = 200;
/** Longer than a component takes to restart. */
const TIMEOUT_MS = 10_000;
const METRICS: Record<CollectorKind, string> = { "OTLP JSON": "n", "OTLP protobuf": "n", InfluxDB: "collected.n" };

/** The value of every point follows from its time. */
const valueAt = (tsMs: number): number => tsMs % 1_000;

/** Sends points of one agent. Throws unless all were acknowledged. */
type Send = (apId: string, times: readonly number[]) => Promise<void>;

export async function startCollector(target: Target, kind: CollectorKind, pauseMs: number): Promise<Workload> {
  const { client, dataDir } = target;
  const prefix = `collector-${kind.toLowerCase().replace(" ", "-")}-${Date.now()}`;
  const agents = await makeAgents(dataDir, prefix, AGENTS);
  const { token } = await makeUser(dataDir, `${prefix}@example.com`, "none", ["admin"]);
  const login = { name: prefix, key: crypto.randomUUID() };
  const body = { app_name: login.name, api_key: login.key, permissions: { write: true } };
  await client.call("/api/v1/third_party_apps/", { token, body });
  const send = SENDERS[kind](target.client.url, login);
  const oracle = new TelemetryOracle(target, prefix, METRICS[kind]);
  const stop = new AbortController();
  const senders = agents.map(async ({ apId }) => {
    for (let nextMs = Date.now() - 1_000_000; !stop.signal.aborted; await sleep(pauseMs)) {
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
      for (const tsMs of times) oracle.record(apId, tsMs);
    }
  });
  return createWorkload(kind, stop, senders, {
    acknowledged: () => oracle.acknowledged,
    settle: async () => {
      const { unexpected, ...verdict } = await oracle.compare();
      const wrong = await countWrongValues(target, prefix, METRICS[kind]);
      return { ...verdict, violations: { unexpected, "wrong values": wrong } };
    },
  });
}

async function countWrongValues(target: Pick<Target, "urls">, prefix: string, metric: string): Promise<number> {
  return await withClickHouse(target, async (clickhouse) => {
    const query = `SELECT count() AS n FROM points_v1 WHERE startsWith(ap_id, {prefix:String}) AND metric = {metric:String}
      AND value != toUnixTimestamp64Milli(ts) % 1000`;
    const [row] = await selectRows<{ n: string }>(clickhouse, query, { prefix, metric });
    return Number(row?.n ?? 0);
  });
}

interface AppLogin {
  name: string;
  key: string;
}

const SENDERS: Record<CollectorKind, (url: string, login: AppLogin) => Send> = {
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
      batchSize: times.length,
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
