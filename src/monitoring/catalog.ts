/** What the service counts and measures of itself. All of it is data; what is not written here is not shown. */

export interface MetricDefinition {
  type: "counter" | "gauge" | "histogram";
  help: string;
  /** Names of the labels, in the order of a series' words. Their values are words of the code, never of a request. */
  labels: readonly string[];
  /** Series that are shown from the start, at zero: of one that appears with its first event, an alert would miss that event. */
  always?: readonly string[];
}

export const METRICS = {
  controller_build_info: { type: "gauge", help: "The version that answers; always 1.", labels: ["version"] },
  controller_up: { type: "gauge", help: "Whether a part answers that the service needs.", labels: ["part"] },
  controller_requests_total: {
    type: "counter",
    help: "Requests answered.",
    labels: ["operation", "status"],
  },
  controller_request_seconds: {
    type: "histogram",
    help: "Time from a request to the head of its answer.",
    labels: ["operation"],
  },
  controller_errors_total: {
    type: "counter",
    help: "Requests that the service failed at: by a fault of its own, or because a part was away.",
    labels: ["kind"],
    always: ["bug", "unavailable"],
  },
  controller_logins_total: {
    type: "counter",
    help: "Logins: accepted, failed, or turned away after too many that failed.",
    labels: ["login_type", "outcome"],
    always: ["user", "agent", "third_party_app"].flatMap((type) =>
      ["accepted", "failed", "limited"].map((outcome) => `${type} ${outcome}`),
    ),
  },
  controller_ingest_samples_total: {
    type: "counter",
    help: "Samples: committed to the telemetry store, or refused since it was away or behind; those come again.",
    labels: ["outcome"],
    always: ["committed", "refused"],
  },
  controller_ingest_batches_total: {
    type: "counter",
    help: "Batches of samples committed to the telemetry store.",
    labels: [],
    always: [""],
  },
  controller_ingest_lag_seconds: {
    type: "histogram",
    help: "Time from a report's arrival at the service, or at the bridge, to its commit.",
    labels: ["via"],
  },
  controller_bridge_messages_total: {
    type: "counter",
    help: "Messages of agents that the bridge brought from the broker: accepted, or rejected for their content by the bridge or the service.",
    labels: ["outcome"],
    always: ["accepted", "rejected"],
  },
  controller_ingest_waiting_samples: {
    type: "gauge",
    help: "Samples that wait in a shard for their insert.",
    labels: ["shard"],
  },
  controller_outbox_messages: {
    type: "gauge",
    help: "Messages for the broker that are not known to have arrived.",
    labels: [],
  },
  controller_outbox_oldest_seconds: {
    type: "gauge",
    help: "How long the oldest message has waited to be published for the first time.",
    labels: [],
  },
  controller_jobs: { type: "gauge", help: "Jobs that are kept, by state.", labels: ["state"] },
  controller_job_sockets: { type: "gauge", help: "Open sockets of jobs.", labels: [] },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof METRICS;

/** Upper bounds of the histograms' buckets: few, and the same for all. */
export const BUCKETS_MS = [5, 25, 100, 500, 2_500, 10_000] as const;
export const BEYOND = "+Inf";
/** The word in the place of a bucket under which a histogram's values are added up, in milliseconds. */
export const SUM = "sum";

/** A figure and its labels' values, as one text of words; of a histogram, its bucket or the sum besides. */
export const series = (figure: MetricName, ...words: string[]): string => [figure, ...words].join(" ").trimEnd();

/** Those that are shown at zero before anything is counted. */
export const ALWAYS: readonly string[] = Object.entries<MetricDefinition>(METRICS).flatMap(
  ([figure, { always = [] }]) => always.map((words) => series(figure as MetricName, words)),
);

/** The series of a histogram, made once for the many times that something is measured. */
export interface Histogram {
  /** One more than there are bounds. */
  buckets: readonly string[];
  sum: string;
}

export const histogram = (figure: MetricName, ...words: string[]): Histogram => ({
  buckets: [...BUCKETS_MS.map(String), BEYOND].map((bound) => series(figure, ...words, bound)),
  sum: series(figure, ...words, SUM),
});
