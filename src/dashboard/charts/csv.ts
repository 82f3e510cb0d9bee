import { csvField } from "../lib/csv-field.ts";
import { saveFile } from "../lib/save.ts";
import type { SeriesStore } from "./series-store.ts";

/** One line for each point: the metrics of an access point need not be of the same times. */
export function saveSeries(name: string, store: SeriesStore, metrics: readonly string[]): void {
  const parts = ["time,metric,value\r\n"];
  for (const metric of metrics) {
    const { times, values } = store.track(metric);
    times.forEach((timeMs, i) => {
      parts.push(`${new Date(timeMs).toISOString()},${csvField(metric)},${csvField(values[i])}\r\n`);
    });
  }
  saveFile(`${name}.csv`, "text/csv", parts);
}
