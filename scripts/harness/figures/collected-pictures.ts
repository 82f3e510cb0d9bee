import { loadavg } from "node:os";
import { join } from "node:path";
import { InfluxDB, Point } from "@influxdata/influxdb-client";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { print } from "../../../src/programs/shared/cli.ts";
import type { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import type { ApiClient } from "../client.ts";
import type { AppLogin } from "../collectors/collector-account.ts";
import { icingaIsMissing, startIcinga } from "../collectors/icinga.ts";
import { getOpenWispScript, OpenWispDevice } from "../collectors/openwisp-device.ts";
import { startTelegraf, telegrafIsMissing } from "../collectors/telegraf.ts";

/** Collectors of other systems for pictures of docs/integrations.md. Each writes for an access point of its own, about every second. */

const EVERY_MS = 1_000;
const INTERFACES = 2;

/** A picture and the access point on it. */
export interface Collected {
  file: string;
  apId: string;
}

export interface Collectors {
  /** Those of the collectors that run. */
  pictures: Collected[];
  stop(): Promise<void>;
}

interface Place {
  client: ApiClient;
  /** Of an administrator. */
  token: string;
  supervisor: Supervisor;
  folder: string;
}

/** Starts every collector that this machine has. */
export async function startCollectors({ client, token, supervisor, folder }: Place): Promise<Collectors> {
  const pictures: Collected[] = [];
  const stops: (() => Promise<unknown> | unknown)[] = [];
  const register = async (name: string, permissions: object = {}): Promise<{ apId: string; app: AppLogin }> => {
    const [apId, app] = [`${name}-1`, { name, key: crypto.randomUUID() }];
    await client.call("/api/v1/agents/", { token, body: { ap_id: apId, password: app.key, configuration: {} } });
    const body = { app_name: app.name, api_key: app.key, permissions: { write: true, ...permissions } };
    await client.call("/api/v1/third_party_apps/", { token, body });
    pictures.push({ file: `${name}.png`, apId });
    return { apId, app };
  };

  const otlp = await register("opentelemetry");
  stops.push(startOtlp(client.url, otlp.apId, otlp.app));
  const influx = await register("influxdb");
  stops.push(startInflux(client.url, influx.apId, influx.app));
  const tokenOf = ({ name, key }: AppLogin): string => `${name}:${key}`;
  const [noIcinga, noTelegraf] = [icingaIsMissing(), telegrafIsMissing()];
  if (noIcinga !== undefined) print(`No picture of icinga2: ${noIcinga}.`);
  else {
    const { apId, app } = await register("icinga2", { agent_label: "hostname" });
    const icinga = { url: client.url, apIds: [apId], token: tokenOf(app) };
    await startIcinga(supervisor, join(folder, "icinga"), icinga);
  }
  if (noTelegraf !== undefined) print(`No picture of Telegraf: ${noTelegraf}.`);
  else {
    const { apId, app } = await register("telegraf");
    const telegraf = { url: `${client.url}/api/v1/influx`, apId, token: tokenOf(app) };
    await startTelegraf(supervisor, join(folder, "telegraf"), telegraf);
  }
  const script = await getOpenWispScript(folder);
  if ("missing" in script) print(`No picture of OpenWISP's agent: ${script.missing}.`);
  else {
    const { apId, app } = await register("openwisp");
    const account = { url: `${client.url}/api/v1/openwisp`, apId, password: app.key };
    const device = new OpenWispDevice(script.path, account, INTERFACES);
    stops.push(() => device.stop());
  }
  return { pictures, stop: async () => void (await Promise.all(stops.map((stop) => stop()))) };
}

/** The metrics of this program, through the OpenTelemetry SDK. Returns a function that ends it. */
function startOtlp(url: string, apId: string, { name, key }: AppLogin): () => Promise<void> {
  const exporter = new OTLPMetricExporter({
    url: `${url}/api/v1/otlp/v1/metrics`,
    headers: { Authorization: `Basic ${btoa(`${name}:${key}`)}` },
  });
  const provider = new MeterProvider({
    resource: resourceFromAttributes({ "service.name": "radio", "host.name": apId }),
    readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: EVERY_MS })],
  });
  const meter = provider.getMeter("pictures");
  const observe = (metric: string, value: () => number) =>
    meter.createObservableGauge(metric).addCallback((result) => result.observe(value()));
  observe("process.memory.usage", () => process.memoryUsage.rss());
  observe("v8js.memory.heap.used", () => process.memoryUsage().heapUsed);
  observe("process.cpu.time", () => process.cpuUsage().user / 1e6);
  observe("system.cpu.load_average.1m", () => loadavg()[0] ?? 0);
  return () => provider.shutdown();
}

/** The load and the memory of this program, through InfluxDB's client. Returns a function that ends it. */
function startInflux(url: string, apId: string, { name, key }: AppLogin): () => Promise<void> {
  const influx = new InfluxDB({ url: `${url}/api/v1/influx`, token: `${name}:${key}` });
  const api = influx.getWriteApi("any", "any", "ms", { flushInterval: EVERY_MS });
  const timer = setInterval(() => {
    const [load1 = 0, load5 = 0] = loadavg();
    api.writePoint(new Point("system").tag("host", apId).floatField("load1", load1).floatField("load5", load5));
    api.writePoint(new Point("mem").tag("host", apId).intField("used", process.memoryUsage.rss()));
  }, EVERY_MS);
  return async () => {
    clearInterval(timer);
    await api.close();
  };
}
