import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { formatMetricName } from "../../../src/protocols/metric-name.ts";
import type { Target } from "../client.ts";
import { until } from "../product.ts";
import { createWorkload, type Workload } from "../workload.ts";
import { createCollector, createProgramHome } from "./collector-account.ts";
import { PointOracle } from "./point-oracle.ts";
import { PROMETHEUS, queryPrometheus, startTool } from "./prometheus.ts";

/**
 * A stock Prometheus scrapes an exporter in this process and writes the samples to the service. Its own database is the record: the service
 * must have the same samples, and the exporter's must have the values that it served.
 */

const AGENTS = 4;
const SERIES = 100;
const JOB = "collectors";
const METRIC = "collected";
const POLL_MS = 1_000;
/** Longer than a component takes to restart and the queue to empty. */
const SENT_WITHIN_MS = 300_000;

const valueAt = (series: number, tsMs: number): number => series * 1_000 + (tsMs % 1_000) / 8;

/** Undefined if it can run here. */
export const prometheusIsMissing = (): string | undefined =>
  existsSync(PROMETHEUS) ? undefined : `${PROMETHEUS} is not installed`;

export async function startPrometheusWrites(target: Target): Promise<Workload> {
  const { prefix, apIds, login } = await createCollector(target, "Prometheus", AGENTS);
  const exporter = await startExporter();
  const scraping = `scrape_configs:
  - job_name: ${JOB}
    scrape_interval: 1s
    static_configs:
${apIds.map((apId) => `      - { targets: ["127.0.0.1:${exporter.port}"], labels: { instance: "${apId}" } }`).join("\n")}
`;
  const writing = `remote_write:
  - url: ${target.client.url}/api/v1/prometheus/write
    basic_auth: { username: "${login.name}", password: "${login.key}" }
`;
  const { folder, supervisor, remove } = createProgramHome("prometheus");
  const startedMs = Date.now();
  const { url, configure } = await startTool(supervisor, folder, { config: writing });
  // It does not send samples from before it reads its log.
  await until(async () => Number.isFinite((await readMetrics(url)).current("wal_watcher_current_segment")));
  await configure(`${scraping}${writing}`);

  const stop = new AbortController();
  let metrics = await readMetrics(url);
  let acknowledged = 0;
  const poll = async () => {
    metrics = await readMetrics(url).catch(() => metrics);
    acknowledged = Math.max(acknowledged, countAcknowledged(metrics));
  };
  const running = (async () => {
    for (; !stop.signal.aborted; await sleep(POLL_MS)) await poll();
    // Ends the scrapes. The queue stays.
    await configure(writing);
    const isSent = async () => {
      await poll();
      const { current } = metrics;
      const [sent, scraped] = [
        current("remote_storage_queue_highest_sent_timestamp_seconds"),
        current("remote_storage_highest_timestamp_in_seconds"),
      ];
      return current("remote_storage_samples_pending") === 0 && sent >= scraped;
    };
    await until(isSent, SENT_WITHIN_MS, POLL_MS).catch(() => {});
  })();

  return createWorkload("Prometheus", stop, [running], {
    acknowledged: () => acknowledged,
    settle: async () => {
      const oracle = new PointOracle(target, prefix);
      let different = 0;
      // The same range for all agents, however long the queries take.
      const time = Math.ceil(Date.now() / 1_000);
      const rangeS = time - Math.floor(startedMs / 1_000) + 1;
      for (const apId of apIds) {
        for (const { metric, values = [] } of await queryPrometheus(url, `{instance="${apId}"}[${rangeS}s]`, {
          time,
        })) {
          const { __name__: name = "", instance: _, ...labels } = metric;
          const stored = formatMetricName(name, labels);
          for (const [timeS, text] of values) {
            const [tsMs, value] = [Math.round(timeS * 1_000), Number(text)];
            if (name === METRIC && value !== valueAt(Number(labels.series), tsMs)) different++;
            oracle.record(apId, stored, tsMs, value);
          }
        }
      }
      acknowledged = oracle.recorded;
      const { violations, ...verdict } = await oracle.compare();
      const { current } = metrics;
      await supervisor.stop();
      remove();
      exporter.close();
      return {
        ...verdict,
        violations: {
          ...violations,
          "unlike the exporter's": different,
          "given up by Prometheus": current("remote_storage_samples_failed_total"),
          "dropped by Prometheus": current("remote_storage_samples_dropped_total"),
        },
      };
    },
  });
}

/** Serves samples with explicit times to the targets, all of which are this one server. */
async function startExporter() {
  const server = createServer((_request, response) => {
    const tsMs = Date.now();
    const lines = Array.from({ length: SERIES }, (_, i) => `${METRIC}{series="${i}"} ${valueAt(i, tsMs)} ${tsMs}\n`);
    response.setHeader("Content-Type", "text/plain; version=0.0.4");
    response.end(`# TYPE ${METRIC} gauge\n${lines.join("")}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

interface PrometheusMetrics {
  /** Returns a metric of Prometheus itself, without its prefix. NaN if it does not exist yet. */
  current(name: string): number;
}

async function readMetrics(url: string): Promise<PrometheusMetrics> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return {
    current: (name) =>
      Number(new RegExp(`^prometheus_${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN),
  };
}

/** Returns a lower bound: each shard may have counted a batch that is not acknowledged yet. */
function countAcknowledged({ current }: PrometheusMetrics): number {
  const [total, retried, failed] = ["total", "retried_total", "failed_total"].map((name) =>
    current(`remote_storage_samples_${name}`),
  );
  const underWay = current("remote_storage_shards") * current("remote_storage_max_samples_per_send");
  return (total ?? 0) - (retried ?? 0) - (failed ?? 0) - underWay || 0;
}
