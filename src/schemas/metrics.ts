import * as z from "zod";
import { LABEL_KEY, MAX_LABEL_LENGTH } from "../lib/selectors.ts";
import { Selector } from "./fleet/selector.ts";
import { splitMetricNames } from "./metric-list.ts";
import { customIssue, Page, QueryFlag } from "./primitives.ts";
import { Timestamp } from "./telemetry.ts";

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Length of the period to read: minutes, or a number with a unit. Parsed to milliseconds. */
const windowUpTo = (maxDays: number) =>
  z.string().transform((text, context): number => {
    const [, number = "", unit = "m"] = /^(\d+)([smhdw])?$/.exec(text) ?? [];
    const ms = Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS];
    if (number !== "" && ms >= UNIT_MS.s && ms <= maxDays * UNIT_MS.d) return ms;
    const msg = `Value error, window must be minutes, or a number with s, m, h, d or w, from 1s to ${maxDays}d`;
    context.addIssue(customIssue("value_error", msg));
    return z.NEVER;
  });
const describeWindow = (maxDays: number): string =>
  `Minutes, or a number with a unit: \`30s\`, \`5m\`, \`1h\`, \`7d\`, \`2w\`. From 1s to ${maxDays}d.`;

const MAX_WINDOW_DAYS = 31;
const Window = windowUpTo(MAX_WINDOW_DAYS)
  .prefault("5")
  .meta({ description: describeWindow(MAX_WINDOW_DAYS) });

const ApId = z.string().describe("The agent's `ap_id`.");
const Since = Timestamp.optional().describe("Returns only newer points, for a chart that already has the older ones.");

export const MAX_METRICS = 50;

/** A list of names, as repeated parameters or separated by commas. */
const nameList = (split: (names: string) => string[]) =>
  z
    .union([z.string(), z.array(z.string())])
    .transform((value) => [...new Set([value].flat().flatMap(split))].filter((name) => name !== ""));
const metricNames = (max: number) =>
  nameList(splitMetricNames)
    .pipe(z.array(z.string()).min(1).max(max))
    .meta({
      description: `Names of metrics, as repeated parameters or separated by commas; at most ${max}.`,
    });
export const MetricNames = metricNames(MAX_METRICS);

export const AgentDataQuery = z.object({ agent: ApId, window: Window, since: Since });
export const MultiMetricQuery = z.object({
  agent: ApId,
  metrics: MetricNames,
  window: Window,
  since: Since,
  sources: QueryFlag.default(false).describe("Whether to return the sources of the agent's samples."),
});
export const MetricsQuery = z.object({ agent: ApId, window: Window });
export const AgentDetailsQuery = Page;

const point = <V extends z.ZodType>(value: V) => z.object({ ts: z.iso.datetime(), value });
const series = <V extends z.ZodType>(value: V) =>
  z.object({
    metric: z.string(),
    bucket_ms: z
      .int()
      .optional()
      .describe("Set if there were more than 2,000 points: each point is the mean over this many milliseconds."),
    points: z.array(point(value)),
  });

/** Set only while ClickHouse does not respond. */
const CompleteFrom = z.iso
  .datetime()
  .optional()
  .describe(
    "Set while the telemetry store does not respond: points before this time are missing. They appear again when it responds.",
  );

/** Set only while ClickHouse, or one of its shards, does not respond. */
export const LastSeenUnknown = z
  .literal(true)
  .optional()
  .describe(
    "Set while a part of the telemetry store does not respond: the time of the last report, if there is one, cannot be read.",
  );

export const AgentDetails = z
  .object({ id: z.uuid(), ap_id: z.string(), configuration: z.record(z.string(), z.unknown()), onboard: z.boolean() })
  .meta({ id: "AgentDetails" });
export type AgentDetails = z.output<typeof AgentDetails>;

export const AgentState = AgentDetails.extend({
  online: z
    .boolean()
    .describe(
      "Whether the last report was received less than three intervals ago (`configuration.interval` in seconds, default 10, at most " +
        "3600), or less than 10 seconds ago. The agent's clock is not used.",
    ),
  last_seen: z.iso.datetime().nullable().describe("Time of the last report, by the service's clock."),
  last_seen_unknown: LastSeenUnknown,
  labels: z.record(z.string(), z.string()),
}).meta({ id: "AgentState" });
export type AgentState = z.output<typeof AgentState>;

export const AgentData = z
  .object({
    key: z.string().describe("`agent/<ap_id>/data`"),
    agent_id: z.string(),
    window_minutes: z.int(),
    complete_from: CompleteFrom,
    series: z.array(series(z.union([z.number(), z.string()]))),
  })
  .meta({ id: "AgentData" });
export type AgentData = z.output<typeof AgentData>;

/** The ways in which samples arrive. */
const PROTOCOLS = ["http", "mqtt", "emulator", "prometheus", "otlp", "influx", "openwisp"] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export const SampleSource = z
  .object({
    protocol: z
      .enum(PROTOCOLS)
      .describe("`emulator`: from the emulator of the service, over MQTT. `prometheus`: Prometheus remote write."),
    app: z.string().nullable().describe("The app that sends for the agent. Null: the agent itself sends."),
    last_received: z.iso.datetime().describe("Time of the last receipt, by the service's clock."),
  })
  .meta({ id: "SampleSource" });
export type SampleSource = z.output<typeof SampleSource>;

export const MultiMetricData = z
  .object({
    agent_id: z.string(),
    window_minutes: z.int(),
    complete_from: CompleteFrom,
    sources: z
      .array(SampleSource)
      .optional()
      .describe(
        "Only if requested: how the agent's samples arrive, the latest source first, at most 8. The service does not store them: after it " +
          "restarts, a source is absent until its next report.",
      ),
    series: z.array(series(z.number())),
  })
  .meta({ id: "MultiMetricData" });
export type MultiMetricData = z.output<typeof MultiMetricData>;

export const AgentMetrics = z
  .object({
    agent_id: z.string(),
    window_minutes: z.int(),
    metrics: z.array(z.object({ name: z.string(), label: z.string() })),
  })
  .meta({ id: "AgentMetrics" });
export type AgentMetrics = z.output<typeof AgentMetrics>;

/** `p50` and `p95` are exact: the value of that rank. */
export const STATISTICS = ["avg", "sum", "min", "max", "p50", "p95", "count"] as const;
export type Statistic = (typeof STATISTICS)[number];

export const MAX_AGGREGATE_METRICS = 10;
const MAX_BY = 3;
const MAX_PERIOD_DAYS = 366;
const DEFAULT_AGGREGATE_WINDOW = "60m";

const LabelKeys = nameList((names) => names.split(","))
  .pipe(z.array(z.string().max(MAX_LABEL_LENGTH).regex(LABEL_KEY)).max(MAX_BY))
  .meta({
    description: `Label keys that divide the agents into groups, as repeated parameters or separated by commas; at most ${MAX_BY}.`,
  });

export const AggregateQuery = z
  .object({
    selector: Selector.optional(),
    metrics: metricNames(MAX_AGGREGATE_METRICS),
    by: LabelKeys.prefault([]),
    statistic: z.enum(STATISTICS).default("avg"),
    window: windowUpTo(MAX_PERIOD_DAYS)
      .optional()
      .meta({
        description: `The period up to now. ${describeWindow(MAX_PERIOD_DAYS)} Default: ${DEFAULT_AGGREGATE_WINDOW}, unless \`start_time\` is given.`,
      }),
    start_time: Timestamp.optional().describe("Start of a period. UTC, unless it has an offset."),
    end_time: Timestamp.optional().describe("End of the period. Default: now."),
  })
  .superRefine(({ window, start_time, end_time }, context) => {
    const reject = (field: string, msg: string) =>
      context.addIssue({ ...customIssue("value_error", `Value error, ${msg}`), path: [field] });
    if (start_time === undefined) {
      if (end_time !== undefined) reject("end_time", "end_time needs start_time");
      return;
    }
    const endMs = end_time ?? Date.now();
    if (window !== undefined) reject("window", "give either window or start_time");
    else if (endMs <= start_time) reject("end_time", "end_time must be after start_time");
    else if (endMs - start_time > MAX_PERIOD_DAYS * UNIT_MS.d)
      reject("end_time", `the period must not exceed ${MAX_PERIOD_DAYS} days`);
  });
export type AggregateQuery = z.output<typeof AggregateQuery>;

export const Aggregate = z
  .object({
    statistic: z.enum(STATISTICS),
    bucket_ms: z.int().describe("Length of the buckets: whole minutes."),
    start_time: z.iso.datetime().describe("Start of the first bucket."),
    end_time: z.iso.datetime().describe("End of the last bucket."),
    complete_from: CompleteFrom,
    groups: z.array(
      z.object({
        labels: z
          .record(z.string(), z.string().nullable())
          .describe("A value for each key of `by`; null: no such label."),
        agents: z.int().describe("Number of agents in the group now."),
        series: z.array(
          z.object({
            metric: z.string(),
            points: z
              .array(point(z.number()))
              .describe("`ts` is the start of the bucket. Buckets without values are absent."),
          }),
        ),
      }),
    ),
  })
  .meta({ id: "Aggregate" });
export type Aggregate = z.output<typeof Aggregate>;
