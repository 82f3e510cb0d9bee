import { type DownloadRequest, downloadPoints } from "../api/operations.ts";
import { Menu } from "../components/menu.tsx";
import { type Action, useAction } from "../lib/action.ts";
import { saveFile } from "../lib/browser.ts";

type Format = DownloadRequest["format"];

const FORMATS: readonly { format: Format; label: string; hint: string }[] = [
  { format: "csv", label: "CSV", hint: "for spreadsheets" },
  { format: "ndjson", label: "NDJSON", hint: "one JSON object in each line" },
  { format: "parquet", label: "Parquet", hint: "for pandas, DuckDB and Spark" },
  { format: "arrow", label: "Arrow", hint: "for pandas and Polars" },
];

interface Shown extends Pick<DownloadRequest, "agent" | "selector" | "metrics"> {
  windowMs: number;
  untilMs: number;
}

/** Returns the download of the points that the charts show. The points are those that were reported: charts of long periods show means. */
export const useDownload = ({ windowMs, untilMs, ...of }: Shown): Action<[Format]> =>
  useAction(async (format) => {
    const start_time = new Date(untilMs - windowMs).toISOString();
    const request = { ...of, start_time, end_time: new Date(untilMs).toISOString(), format };
    const { name, content } = await downloadPoints(request).catch((error: Error) => {
      throw new Error(`The download failed. ${error.message}`);
    });
    saveFile(name, content.type, [content]);
  });

/** Offers the formats of a download. */
export function DownloadMenu({ download, isEmpty = false }: { download: Action<[Format]>; isEmpty?: boolean }) {
  const { run, isBusy } = download;
  const items = FORMATS.map(({ format, label, hint }) => ({
    label,
    hint,
    isDisabled: isBusy || isEmpty,
    onChoose: () => void run(format),
  }));
  return <Menu label={isBusy ? "Downloading…" : "Download"} items={items} />;
}
