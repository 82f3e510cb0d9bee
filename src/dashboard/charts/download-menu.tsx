import { type DownloadRequest, downloadPoints } from "../api/operations.ts";
import { Menu } from "../components/menu.tsx";
import { Failed } from "../components/states.tsx";
import { useAction } from "../lib/action.ts";
import { saveFile } from "../lib/browser.ts";

const FORMATS: readonly { format: DownloadRequest["format"]; label: string; hint: string }[] = [
  { format: "csv", label: "CSV", hint: "for spreadsheets" },
  { format: "ndjson", label: "NDJSON", hint: "one JSON object in each line" },
  { format: "parquet", label: "Parquet", hint: "for pandas, DuckDB and Spark" },
  { format: "arrow", label: "Arrow", hint: "for pandas and Polars" },
];

interface DownloadMenuProps extends Pick<DownloadRequest, "agent" | "selector" | "metrics"> {
  fromMs: number;
  untilMs: number;
}

/** Downloads the reported points of the metrics and the period that the charts show. Charts of long periods show means of these. */
export function DownloadMenu({ fromMs, untilMs, ...of }: DownloadMenuProps) {
  const { run, isBusy, error } = useAction(async (format: DownloadRequest["format"]) => {
    const [start_time, end_time] = [new Date(fromMs).toISOString(), new Date(untilMs).toISOString()];
    const { name, content } = await downloadPoints({ ...of, start_time, end_time, format });
    saveFile(name, content.type, [content]);
  });
  return (
    <>
      <Menu
        label={isBusy ? "Downloading…" : "Download"}
        items={FORMATS.map(({ format, label, hint }) => ({
          label,
          hint,
          isDisabled: isBusy || of.metrics.length === 0,
          onChoose: () => void run(format),
        }))}
      />
      <Failed error={error && new Error(`The download failed. ${error.message}`)} />
    </>
  );
}
