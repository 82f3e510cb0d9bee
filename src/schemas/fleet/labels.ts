import * as z from "zod";
import { LABEL_KEY, LABEL_VALUE, MAX_LABEL_LENGTH, SERVICE_LABELS } from "../../lib/selectors.ts";
import { integer, QueryFlag } from "../primitives.ts";
import { Selector, SelectorText } from "./selector.ts";

/** The labels that callers may set on one agent. */
export const MAX_LABELS = 64;
/** Agents whose labels one request can change. */
export const MAX_LABELLED_AGENTS = 20_000;
/** Keys in one list of labels or one CSV file. */
export const MAX_LABEL_KEYS = 1_000;

export const LabelKey = z
  .string()
  .max(MAX_LABEL_LENGTH)
  .regex(LABEL_KEY)
  .refine((key) => !SERVICE_LABELS.includes(key), "only the service sets this label");
export const LabelValue = z.string().max(MAX_LABEL_LENGTH).regex(LABEL_VALUE);

/** Labels of an agent that callers set. */
export const CustomLabels = z
  .record(LabelKey, LabelValue)
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, `an agent has at most ${MAX_LABELS} labels`)
  .meta({ description: 'For example `{"site": "uk/bristol/library"}`. Values may have the form of paths.' });

/** Changes of labels. Null removes a label. */
export const LabelChanges = z
  .record(LabelKey, LabelValue.nullable())
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, `at most ${MAX_LABELS} labels`)
  .meta({ id: "LabelChanges", description: "Sets these labels. Null removes a label. Other labels stay unchanged." });
export type LabelChanges = z.output<typeof LabelChanges>;

export const LabelledAgent = z
  .object({
    ap_id: z.string(),
    labels: z.record(z.string(), z.string()).describe("All labels, including those that the service sets."),
  })
  .meta({ id: "LabelledAgent" });
export type LabelledAgent = z.output<typeof LabelledAgent>;

export const LabelsQuery = z.object({
  selector: Selector.optional(),
  limit: integer(z.int().gt(0).lte(1000)).default(100).describe("Maximum number of values for each key."),
});
export type LabelsQuery = z.output<typeof LabelsQuery>;

export const LabelSummary = z
  .object({
    key: z.string(),
    agents: z.int().describe("Number of agents that have this label."),
    values: z.array(z.object({ value: z.string(), agents: z.int() })).describe("The most frequent values first."),
  })
  .meta({ id: "LabelSummary" });
export type LabelSummary = z.output<typeof LabelSummary>;

export const LabelsRequest = z
  .object({
    selector: SelectorText,
    labels: LabelChanges,
    dry_run: z.boolean().default(false).describe("Changes nothing, and returns how many agents would change."),
  })
  .meta({ id: "LabelMany" });
export type LabelsRequest = z.output<typeof LabelsRequest>;

export const LabelsChanged = z
  .object({
    status: z.literal("success"),
    agents: z.int().describe("Number of agents in the selection or in the file."),
    changed: z.int().describe("Number of agents whose labels change."),
    dry_run: z.boolean(),
  })
  .meta({ id: "LabelsChanged" });
export type LabelsChanged = z.output<typeof LabelsChanged>;

export const ImportQuery = z.object({
  dry_run: QueryFlag.default(false).describe("Checks the file and changes nothing."),
});

export const LabelsCsv = z
  .string()
  .describe(
    "The first line is `ap_id` and the keys of labels. Each other line has the name of an agent and its labels. An empty cell removes the " +
      "label. Labels without a column stay unchanged.",
  );
