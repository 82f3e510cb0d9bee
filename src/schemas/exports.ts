import * as z from "zod";
import { Selector } from "./fleet/selector.ts";
import { MetricNames } from "./metrics.ts";
import { customIssue } from "./primitives.ts";
import { Timestamp } from "./telemetry.ts";

export const DOWNLOAD_FORMATS = ["csv", "ndjson", "parquet", "arrow"] as const;

const MAX_PERIOD_DAYS = 366;
const DAY_MS = 86_400_000;

export const DownloadQuery = z
  .object({
    agent: z.string().optional().describe("The `ap_id` of one agent."),
    selector: Selector.optional(),
    metrics: MetricNames.optional().meta({
      description: "Names of metrics, as repeated parameters or separated by commas; at most 50. Default: all metrics.",
    }),
    start_time: Timestamp.optional().describe("Default: one day before `end_time`. UTC, unless it has an offset."),
    end_time: Timestamp.optional().describe("Default: now."),
    format: z.enum(DOWNLOAD_FORMATS).default("csv").describe("`arrow` is the streaming format of Apache Arrow."),
  })
  .superRefine(({ agent, selector, start_time, end_time }, context) => {
    const reject = (field: string, msg: string) =>
      context.addIssue({ ...customIssue("value_error", `Value error, ${msg}`), path: [field] });
    if (agent !== undefined && selector !== undefined) reject("selector", "give either agent or selector");
    const endMs = end_time ?? Date.now();
    const startMs = start_time ?? endMs - DAY_MS;
    if (endMs <= startMs) reject("end_time", "end_time must be after start_time");
    else if (endMs - startMs > MAX_PERIOD_DAYS * DAY_MS)
      reject("end_time", `the period must not exceed ${MAX_PERIOD_DAYS} days`);
  });
export type DownloadQuery = z.output<typeof DownloadQuery>;

/** Returns the period of a download. */
export function periodOf({ start_time, end_time }: DownloadQuery, nowMs: number): { fromMs: number; toMs: number } {
  const toMs = end_time ?? nowMs;
  return { fromMs: start_time ?? toMs - DAY_MS, toMs };
}
