import { saveFile } from "../live/save.ts";
import { csvField } from "../parts/csv-field.ts";
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
