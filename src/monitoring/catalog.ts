/** The service metrics: everything that `/metrics` exposes. Other series are not shown. */

export interface MetricDefinition {
  type: "counter" | "gauge" | "histogram";
  help: string;
  /** Names of the labels, in the order of a series' label values. The values are constants of the code, never taken from a request. */
  labels: readonly string[];
  /**
   * Label values of series that are shown as zero before their first event. Prometheus sees no increase if a counter first appears with
   * the value 1, so an alert would miss that event.
   */
  initial?: readonly string[];
}

export const METRICS = {
  controller_build_info: { type: "gauge", help: "The running version. Always 1.", labels: ["version"] },
  controller_up: { type: "gauge", help: "Whether a component that the service needs responds.", labels: ["part"] },
  controller_requests_total: {
    type: "counter",
    help: "Completed requests.",
    labels: ["operation", "status"],
  },
  controller_request_seconds: {
    type: "histogram",
    help: "Time from a request to the head of its response.",
    labels: ["operation"],
  },
  controller_errors_total: {
    type: "counter",
    help: "Requests that failed with 5xx: because of a bug, or because a component was unavailable.",
    labels: ["kind"],
    initial: ["bug", "unavailable"],
  },
  controller_logins_total: {
    type: "counter",
    help: "Logins: accepted, failed, or rejected after too many failures.",
    labels: ["login_type", "outcome"],
    initial: ["user", "agent", "third_party_app"].flatMap((type) =>
      ["accepted", "failed", "limited"].map((outcome) => `${type} ${outcome}`),
    ),
  },
  controller_ingest_samples_total: {
    type: "counter",
    help: "Samples: committed to the telemetry store, refused because the journal was full (senders retry those), or quarantined because the store rejects them.",
    labels: ["outcome"],
    initial: ["committed", "refused", "quarantined"],
  },
  controller_ingest_batches_total: {
    type: "counter",
    help: "Batches of samples committed to the telemetry store.",
    labels: [],
    initial: [""],
  },
  controller_ingest_lag_seconds: {
    type: "histogram",
    help: "Time from a report's arrival at the service, or at the bridge, until it is durable.",
    labels: ["via"],
  },
  controller_bridge_messages_total: {
    type: "counter",
    help: "Messages that the bridge delivered from the broker: accepted, or rejected by the bridge or the service for their content.",
    labels: ["outcome"],
    initial: ["accepted", "rejected"],
  },
  controller_ingest_waiting_samples: {
    type: "gauge",
    help: "Samples in a shard's journal, which are not yet in the telemetry store.",
    labels: ["shard"],
  },
  controller_outbox_messages: {
    type: "gauge",
    help: "Messages to the broker without a confirmed delivery.",
    labels: [],
  },
  controller_outbox_oldest_seconds: {
    type: "gauge",
    help: "Age of the oldest message that has not been published yet.",
    labels: [],
  },
  controller_jobs: { type: "gauge", help: "Stored jobs by state.", labels: ["state"] },
  controller_job_sockets: { type: "gauge", help: "Open WebSockets of job streams.", labels: [] },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof METRICS;

/** Upper bounds of the buckets of every histogram. */
export const BUCKETS_MS = [5, 25, 100, 500, 2_500, 10_000] as const;
export const INFINITE = "+Inf";
/** Takes the place of a bucket in the series that sums up the values of a histogram, in milliseconds. */
export const SUM = "sum";

/** Returns the key of a series: the metric and its label values, separated by spaces. For a histogram, the bucket or `SUM` follows. */
export const series = (metric: MetricName, ...labelValues: string[]): string =>
  [metric, ...labelValues].join(" ").trimEnd();

/** Series that are shown as zero before their first event. */
export const INITIAL_SERIES: readonly string[] = Object.entries<MetricDefinition>(METRICS).flatMap(
  ([metric, { initial = [] }]) => initial.map((labelValues) => series(metric as MetricName, labelValues)),
);

/** The series of a histogram, built once and used for every observation. */
export interface Histogram {
  /** One per bound of `BUCKETS_MS`, and one for larger values. */
  buckets: readonly string[];
  sum: string;
}

export const histogram = (metric: MetricName, ...labelValues: string[]): Histogram => ({
  buckets: [...BUCKETS_MS.map(String), INFINITE].map((bound) => series(metric, ...labelValues, bound)),
  sum: series(metric, ...labelValues, SUM),
});
