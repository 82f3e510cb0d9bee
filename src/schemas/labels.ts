import * as z from "zod";
import { LABEL_KEY, LABEL_VALUE, MAX_LABEL_LENGTH, SERVICE_LABELS } from "../lib/selectors.ts";

/** The labels that callers may set on one agent. */
export const MAX_LABELS = 64;

const LabelKey = z
  .string()
  .max(MAX_LABEL_LENGTH)
  .regex(LABEL_KEY)
  .refine((key) => !SERVICE_LABELS.includes(key), "only the service sets this label");
const LabelValue = z.string().max(MAX_LABEL_LENGTH).regex(LABEL_VALUE);

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
