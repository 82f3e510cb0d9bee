import { useId } from "preact/hooks";
import { MAX_SHOWN } from "./chosen-metrics.ts";
import { type ChartWindow, WINDOWS } from "./windows.ts";

/** The controls around the charts. */

export function WindowChoice({
  windows = WINDOWS,
  chosen,
  onChoose,
}: {
  windows?: readonly ChartWindow[];
  chosen: ChartWindow;
  onChoose(window: ChartWindow): void;
}) {
  const name = useId();
  return (
    <fieldset class="segments">
      <legend class="hidden-text">Period</legend>
      {windows.map((window) => (
        <label key={window.id}>
          <input type="radio" name={name} checked={window.id === chosen.id} onChange={() => onChoose(window)} />
          <span>{window.label}</span>
        </label>
      ))}
    </fieldset>
  );
}

export interface Metric {
  name: string;
  label: string;
}

export function MetricChoice({
  metrics,
  chosen,
  onChoose,
}: {
  metrics: readonly Metric[];
  chosen: readonly string[];
  onChoose(chosen: string[]): void;
}) {
  const isFull = chosen.length >= MAX_SHOWN;
  const toggle = (name: string) =>
    onChoose(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
  return (
    <details class="metric-choice">
      <summary>
        Choose metrics{" "}
        <span class="soft">
          {chosen.length} of {metrics.length} shown
        </span>
      </summary>
      <fieldset class="chips">
        <legend class="soft">
          {isFull
            ? `${MAX_SHOWN} metrics are shown, which is the maximum. Remove one to add another.`
            : `Choose up to ${MAX_SHOWN}.`}
        </legend>
        {metrics.map(({ name, label }) => (
          <label key={name} title={name}>
            <input
              type="checkbox"
              checked={chosen.includes(name)}
              disabled={isFull && !chosen.includes(name)}
              onChange={() => toggle(name)}
            />
            <span>{label}</span>
          </label>
        ))}
      </fieldset>
    </details>
  );
}
