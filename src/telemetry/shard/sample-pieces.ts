import { countValues } from "../samples.ts";
import type { AgentSample } from "../store/telemetry-store.ts";

/** Yields a sample in pieces of limited length, each with some of the values. A single value always fits. */
export function* pieces(sample: AgentSample, maxLength: number): Generator<{ sample: AgentSample; text: string }> {
  const text = JSON.stringify(sample);
  if (text.length <= maxLength || countValues(sample) <= 1) {
    yield { sample, text };
    return;
  }
  const [metrics, texts] = [halve(sample.metrics), halve(sample.texts)];
  yield* pieces({ ...sample, metrics: metrics[0], texts: texts[0] }, maxLength);
  yield* pieces({ ...sample, metrics: metrics[1], texts: texts[1] }, maxLength);
}

function halve<V>(fields: Record<string, V>): [Record<string, V>, Record<string, V>] {
  const entries = Object.entries(fields);
  const middle = entries.length >> 1;
  return [Object.fromEntries(entries.slice(0, middle)), Object.fromEntries(entries.slice(middle))];
}
