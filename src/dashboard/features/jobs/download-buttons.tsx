import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { saveFile } from "../../lib/browser.ts";
import { shortNumber } from "./job-text.ts";
import type { RowStore } from "./row-store.ts";

/** Downloads all rows received so far as a file. */
export function DownloadButtons({ jobNumber, store, rows }: { jobNumber: string; store: RowStore; rows: number }) {
  const name = `job-${shortNumber(jobNumber).replace(/[^\w.-]/g, "_")}`;
  const csv = useAction(async () => saveFile(`${name}.csv`, "text/csv;charset=utf-8", await store.csv()));
  return (
    <div class="row">
      <button type="button" disabled={rows === 0 || csv.isBusy} aria-busy={csv.isBusy} onClick={() => void csv.run()}>
        Download CSV
      </button>
      <button
        type="button"
        disabled={rows === 0}
        onClick={() => saveFile(`${name}.ndjson`, "application/x-ndjson", store.ndjson())}
      >
        Download NDJSON
      </button>
      <Failed error={csv.error} />
    </div>
  );
}
