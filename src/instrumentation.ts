import type { Login } from "./accounts/login/login.ts";
import type { Outbox } from "./broker/outbox.ts";
import type { CountRequest } from "./http/request-log.ts";
import type { JobStore } from "./jobs/job-store.ts";
import { NotAuthenticated, TooMany } from "./lib/errors.ts";
import { type Histogram, histogram, type MetricName, series } from "./monitoring/catalog.ts";
import type { MetricRecorder } from "./monitoring/recorder.ts";
import type { Reading, ScrapeOptions } from "./monitoring/scrape.ts";
import type { Ingest } from "./telemetry/ingest.ts";
import type { ShardClient } from "./telemetry/shard/shard-client.ts";

/** Wraps services to record metrics. The services do not depend on the metrics. */

const STATUS_CLASSES = ["", "1xx", "2xx", "3xx", "4xx", "5xx"];

export function createCountRequest(recorder: MetricRecorder): CountRequest {
  // Runs for every request: caches the series keys of each operation.
  const cache = new Map<string, { byClass: string[]; duration: Histogram }>();
  const seriesOf = (operation: string) => {
    const keys = {
      byClass: STATUS_CLASSES.map((status) => series("controller_requests_total", operation, status)),
      duration: histogram("controller_request_seconds", operation),
    };
    cache.set(operation, keys);
    return keys;
  };
  const [bug, unavailable] = ["bug", "unavailable"].map((kind) => series("controller_errors_total", kind));

  return (operation = "none", status, startedMs, endedMs) => {
    const { byClass, duration } = cache.get(operation) ?? seriesOf(operation);
    recorder.add(byClass[Math.trunc(status / 100)] ?? "");
    recorder.observe(duration, endedMs - startedMs);
    if (status >= 500) recorder.add((status === 503 ? unavailable : bug) ?? "");
    recorder.flushIfDue(endedMs);
  };
}

export function withLoginMetrics(login: Login, recorder: MetricRecorder): Login {
  const count = (loginType: string, outcome: "accepted" | "failed" | "limited") =>
    recorder.add(series("controller_logins_total", loginType, outcome));
  return async (loginType, form, origin) => {
    try {
      const accepted = await login(loginType, form, origin);
      count(loginType, "accepted");
      return accepted;
    } catch (error) {
      if (error instanceof NotAuthenticated) count(loginType, "failed");
      if (error instanceof TooMany) count(loginType, "limited");
      throw error;
    }
  };
}

export function withIngestMetrics(ingest: Ingest, recorder: MetricRecorder, now: () => number = Date.now): Ingest {
  const overHttp = histogram("controller_ingest_lag_seconds", "http");
  const overMqtt = histogram("controller_ingest_lag_seconds", "mqtt");
  const accepted = series("controller_bridge_messages_total", "accepted");
  const rejected = series("controller_bridge_messages_total", "rejected");
  return {
    async ingestReport(actor, report) {
      const arrivedMs = now();
      const response = await ingest.ingestReport(actor, report);
      recorder.observe(overHttp, now() - arrivedMs);
      return response;
    },

    async ingestValues(groups, source) {
      const arrivedMs = now();
      const response = await ingest.ingestValues(groups, source);
      recorder.observe(overHttp, now() - arrivedMs);
      return response;
    },

    async ingestBatch(actor, delivery) {
      const response = await ingest.ingestBatch(actor, delivery);
      const committedMs = now();
      for (const [i, { received_at, report }] of delivery.messages.entries()) {
        const result = response.results[i];
        const isAccepted = result !== undefined && !("error" in result);
        recorder.add(isAccepted ? accepted : rejected);
        if (isAccepted && report !== undefined) recorder.observe(overMqtt, committedMs - received_at);
      }
      return response;
    },
  };
}

export interface CollectorsOptions {
  shards: Pick<ShardClient, "waiting">;
  outbox: Pick<Outbox, "state">;
  jobStore: Pick<JobStore, "countByState">;
}

/** Reads metrics from the stores and the shards at the time of a scrape. */
export function createCollectors({
  shards,
  outbox,
  jobStore,
}: CollectorsOptions): Pick<ScrapeOptions, "flushShards" | "collectors"> {
  const reading = (metric: MetricName, value: number, ...labelValues: string[]): Reading => ({
    metric,
    labelValues,
    value,
  });
  return {
    flushShards: async () =>
      Array.from(await shards.waiting(), ([shard, samples]) =>
        reading("controller_ingest_waiting_samples", samples, String(shard)),
      ),
    collectors: [
      {
        name: "outbox",
        async collect() {
          const { messages, oldestMs } = await outbox.state();
          return [
            reading("controller_outbox_messages", messages),
            reading("controller_outbox_oldest_seconds", oldestMs / 1_000),
          ];
        },
      },
      {
        name: "jobs",
        collect: async () =>
          Array.from(await jobStore.countByState(), ([state, count]) => reading("controller_jobs", count, state)),
      },
    ],
  };
}
