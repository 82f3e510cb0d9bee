import * as z from "zod";
import { customIssue, Page } from "./primitives.ts";
import { Timestamp } from "./telemetry.ts";

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
const MAX_WINDOW_MS = 31 * UNIT_MS.d;

/** Length of the period to read: minutes, or a number with a unit. Parsed to milliseconds. */
const Window = z
  .string()
  .default("5")
  .transform((text, context): number => {
    const [, number = "", unit = "m"] = /^(\d+)([smhdw])?$/.exec(text) ?? [];
    const ms = Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS];
    if (number !== "" && ms >= UNIT_MS.s && ms <= MAX_WINDOW_MS) return ms;
    context.addIssue(
      customIssue(
        "value_error",
        "Value error, window must be minutes, or a number with s, m, h, d or w, from 1s to 31d",
      ),
    );
    return z.NEVER;
  })
  .meta({ description: "Minutes, or a number with a unit: `30s`, `5m`, `1h`, `7d`, `2w`. From 1s to 31d." });

const ApId = z.string().describe("The agent's `ap_id`.");
const Since = Timestamp.optional().describe("Returns only newer points, for a chart that already has the older ones.");

export const MAX_METRICS = 50;

const MetricNames = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => [...new Set([value].flat().flatMap((names) => names.split(",")))].filter((name) => name !== ""))
  .pipe(z.array(z.string()).min(1).max(MAX_METRICS))
  .meta({ description: "Names of metrics, as repeated parameters or separated by commas; at most 50." });

export const AgentDataQuery = z.object({ agent: ApId, window: Window, since: Since });
export const MultiMetricQuery = z.object({ agent: ApId, metrics: MetricNames, window: Window, since: Since });
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
  labels: z.record(z.string(), z.string()),
}).meta({ id: "AgentState" });
export type AgentState = z.output<typeof AgentState>;

export const AgentData = z
  .object({
    key: z.string().describe("`agent/<ap_id>/data`"),
    agent_id: z.string(),
    window_minutes: z.int(),
    series: z.array(series(z.union([z.number(), z.string()]))),
  })
  .meta({ id: "AgentData" });
export type AgentData = z.output<typeof AgentData>;

export const MultiMetricData = z
  .object({ agent_id: z.string(), window_minutes: z.int(), series: z.array(series(z.number())) })
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
