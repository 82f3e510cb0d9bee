import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InfluxDB, Point } from "@influxdata/influxdb-client";
import { OTLPMetricExporter as JsonExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter as ProtobufExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { icingaIsMissing, startIcinga } from "../../scripts/harness/collectors/icinga.ts";
import { getOpenWispScript, OpenWispDevice } from "../../scripts/harness/collectors/openwisp-device.ts";
import { otelCollectorIsMissing, startOtelCollector } from "../../scripts/harness/collectors/otel-collector.ts";
import { startTelegraf, telegrafIsMissing } from "../../scripts/harness/collectors/telegraf.ts";
import { until } from "../../scripts/harness/product.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

const WITHIN_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "collectors-"));
const script = await getOpenWispScript(folder);

/** Unmodified collectors of other systems next to the product. Those that are not installed are skipped. */
describe("The product gets every value, once and at its time,", () => {
  const supervisor = new Supervisor();
  let service: ServiceClient;
  let admin: string;

  beforeAll(async () => {
    service = new ServiceClient((await sharedProduct()).url);
    admin = await service.tokenOf(ADMIN);
  });

  afterAll(async () => {
    await supervisor.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const post = (path: string, body: object): Promise<unknown> => service.post(path, admin, body);

  /** Returns all numbers of an agent as `metric`, `tsMs` and `value`, in the order of metric and time. */
  const storedOf = async (apId: string): Promise<[metric: string, tsMs: number, value: number][]> => {
    const path = `/api/v1/metrics/download?agent=${apId}&format=ndjson&end_time=${Date.now() + 60_000}`;
    const lines = (await (await service.send("GET", path, admin)).text()).split("\n").filter((line) => line !== "");
    const points = lines.map((line) => JSON.parse(line) as { time: string; metric: string; value: number });
    return points.map(({ metric, time, value }) => [metric, Date.parse(time), value]);
  };

  /** Creates an agent, and an app that may write. */
  const createAccounts = async (permissions: object = {}) => {
    const [apId, app, key] = [`collected-${randomUUID()}`, `app-${randomUUID()}`, `${SECRET_MARK}-of-an-app.`];
    await post("/api/v1/agents/", { ap_id: apId, password: key, configuration: {} });
    await post("/api/v1/third_party_apps/", {
      app_name: app,
      api_key: key,
      permissions: { write: true, ...permissions },
    });
    return { apId, app, key };
  };

  it.each([
    ["JSON", JsonExporter],
    ["protobuf", ProtobufExporter],
  ])("from an OpenTelemetry SDK that its environment configures, in %s", async (_, Exporter) => {
    const { apId, app, key } = await createAccounts();
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", `${service.url}/api/v1/otlp`);
    vi.stubEnv("OTEL_EXPORTER_OTLP_HEADERS", `Authorization=Basic ${btoa(`${app}:${key}`)}`);
    vi.stubEnv("OTEL_RESOURCE_ATTRIBUTES", `service.name=radio,host.name=${apId}`);
    const resource = detectResources({ detectors: [envDetector] });
    const reader = new PeriodicExportingMetricReader({ exporter: new Exporter() });
    const meters = new MeterProvider({ resource, readers: [reader] });
    vi.unstubAllEnvs();
    meters.getMeter("radio").createCounter("frames").add(7, { band: "5 GHz" });
    const histogram = meters.getMeter("radio").createHistogram("latency");
    for (const value of [1, 2, 12]) histogram.record(value);
    // The last values are sent here.
    await meters.shutdown();
    const stored = (await storedOf(apId)).map(([metric, , value]) => [metric, value]);
    expect(Object.fromEntries(stored)).toMatchObject({
      'frames{band="5 GHz",service.name="radio"}': 7,
      'latency.count{service.name="radio"}': 3,
      'latency.sum{service.name="radio"}': 15,
      'latency.max{service.name="radio"}': 12,
    });
  });

  it("from InfluxDB's client", async () => {
    const { apId, app, key } = await createAccounts();
    const tsMs = Date.now() - 5_000;
    const influx = new InfluxDB({ url: `${service.url}/api/v1/influx`, token: `${app}:${key}` });
    const writer = influx.getWriteApi("any", "any", "ms");
    for (let i = 0; i < 3; i++)
      writer.writePoint(
        new Point("wifi")
          .tag("host", apId)
          .floatField("load", i / 4)
          .timestamp(tsMs + i),
      );
    await writer.close();
    expect(await storedOf(apId)).toEqual([0, 1, 2].map((i) => ["wifi.load", tsMs + i, i / 4]));
  });

  /** Returns a test that is skipped with a reason. */
  const unless = (missing: string | undefined, name: string, test: () => Promise<void>) =>
    it.skipIf(missing !== undefined)(missing === undefined ? name : `${name} (skipped: ${missing})`, test);

  unless(telegrafIsMissing(), "from Telegraf, also after the service was away", async () => {
    const { apId, app, key } = await createAccounts();
    const port = await anyFreePort();
    const telegraf = new Supervisor();
    const url = `http://127.0.0.1:${port}/api/v1/influx`;
    const record = await startTelegraf(telegraf, join(folder, "telegraf"), { url, apId, token: `${app}:${key}` });
    await until(() => record().length >= 100, WITHIN_MS);
    expect(await storedOf(apId)).toEqual([]);
    // Back again, but the first response is lost.
    const proxy = await cuttingProxy(Number(new URL(service.url).port), 1, port);
    await until(async () => (await storedOf(apId)).length >= 300, WITHIN_MS);
    // It writes the rest when it ends.
    await telegraf.stop();
    await proxy.close();
    expect(proxy.cuts).toBe(1);
    const byMetricAndTime = <P extends [string, number, number]>(points: P[]) =>
      points.toSorted(([a, aMs], [b, bMs]) => (a === b ? aMs - bMs : a < b ? -1 : 1));
    expect(byMetricAndTime(await storedOf(apId))).toEqual(byMetricAndTime(record()));
  });

  unless(otelCollectorIsMissing(), "from an OpenTelemetry collector, also after a lost response", async () => {
    const { apId, app, key } = await createAccounts();
    const proxy = await cuttingProxy(Number(new URL(service.url).port), 1);
    const login = { name: app, key };
    const endpoint = await startOtelCollector(supervisor, join(folder, "otelcol"), { url: proxy.url, login });
    const exporter = new ProtobufExporter({ url: `${endpoint}/v1/metrics` });
    const resource = resourceFromAttributes({ "host.name": apId });
    const meters = new MeterProvider({ resource, readers: [new PeriodicExportingMetricReader({ exporter })] });
    meters.getMeter("radio").createCounter("frames").add(7);
    await meters.forceFlush();
    meters.getMeter("radio").createCounter("frames").add(1);
    await meters.shutdown();
    const values = async () => (await storedOf(apId)).map(([metric, , value]) => [metric, value]);
    await until(async () => (await values()).length === 2, WITHIN_MS);
    expect(await values()).toEqual([
      ["frames", 7],
      ["frames", 8],
    ]);
    expect(proxy.cuts).toBe(1);
    await proxy.close();
  });

  unless(
    "missing" in script ? script.missing : undefined,
    "from OpenWISP's agent, also after the service was away",
    async () => {
      const { apId, key: password } = await createAccounts();
      const port = await anyFreePort();
      const url = `http://127.0.0.1:${port}/api/v1/openwisp`;
      const device = new OpenWispDevice("path" in script ? script.path : "", { url, apId, password }, 2);
      try {
        await until(() => device.reports.length >= 3 && device.responses.length > 0, WITHIN_MS);
        expect(new Set(device.responses.map(({ status }) => status))).toEqual(new Set([0]));
        // Back again, but the first response is lost.
        const proxy = await cuttingProxy(Number(new URL(service.url).port), 1, port);
        await until(() => device.acknowledged >= 4, WITHIN_MS);
        await device.stopCollecting();
        await until(() => device.isEmpty, WITHIN_MS);
        await proxy.close();
        expect(proxy.cuts).toBe(1);
        const expected = device.reports.flatMap(({ tsMs, points }) =>
          points.map(({ metric, value }) => [metric, tsMs, value]),
        );
        expect(expected.length).toBeGreaterThanOrEqual(4 * 5);
        const stored = await storedOf(apId);
        expect(stored).toHaveLength(expected.length);
        expect(stored).toEqual(expect.arrayContaining(expected));
      } finally {
        device.stop();
      }
    },
  );

  unless(icingaIsMissing(), "from Debian's icinga2", async () => {
    const { apId, app, key } = await createAccounts({ agent_label: "hostname" });
    const record = await startIcinga(supervisor, join(folder, "icinga"), {
      url: service.url,
      apIds: [apId],
      token: `${app}:${key}`,
      writesLimits: true,
    });

    await until(() => record().length >= 5, WITHIN_MS);
    const checks = record();
    const metrics = Object.entries({ "load 1": 1, rx: 1, rtt: 1_000, "free /": 1 });
    const namesOf = (label: string) => `values.value{metric="${label}",service="radio"}`;
    const expected = metrics.flatMap(([label, divisor]) =>
      checks.map(({ atS, values }) => [namesOf(label), atS, (values[label] ?? Number.NaN) / divisor] as const),
    );
    const valuesOf = (points: readonly (readonly [string, number, number])[], metric: string): number[] =>
      points.filter(([name]) => name === metric).map(([, , value]) => value);
    await until(async () => valuesOf(await storedOf(apId), namesOf("rx")).length >= checks.length, WITHIN_MS);
    const stored = await storedOf(apId);
    for (const [label] of metrics) {
      const metric = namesOf(label);
      expect(valuesOf(stored, metric).slice(0, checks.length), label).toEqual(valuesOf(expected, metric));
    }
    // It notes the second in which a check ended, the writer that in which it was processed.
    const times = stored.filter(([metric]) => metric === namesOf("rx")).map(([, tsMs]) => tsMs);
    for (const [i, { atS }] of checks.entries()) expect(Math.abs((times[i] ?? 0) / 1_000 - atS)).toBeLessThanOrEqual(1);
    const thresholds = stored.filter(([metric]) => metric === 'values.warn{metric="load 1",service="radio"}');
    expect(new Set(thresholds.map(([, , value]) => value))).toEqual(new Set([0.75]));
  });
});
