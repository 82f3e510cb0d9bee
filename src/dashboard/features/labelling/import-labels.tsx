import { useId, useState } from "preact/hooks";
import type { LabelsChanged } from "../../../schemas/labels.ts";
import { ApiError } from "../../api/call.ts";
import { importLabels } from "../../api/fleet-calls.ts";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Form } from "../../components/form.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { countOf } from "../../lib/format.ts";
import { ChangePreview } from "./change-preview.tsx";

const HINT =
  "The first line names the columns: ap_id and label keys. An empty cell removes the label. Labels without a column stay unchanged.";

/** Sets labels from a CSV file. Choosing a file shows what will change; nothing changes before the confirmation. */
export function ImportLabels({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const id = useId();
  const [csv, setCsv] = useState<string>();
  const [preview, setPreview] = useState<LabelsChanged>();
  const check = useAction(async (file: File | undefined) => {
    setCsv(undefined);
    setPreview(undefined);
    if (file === undefined) return;
    const text = await file.text();
    setPreview(await importLabels(text, true));
    setCsv(text);
  });
  const apply = useAction(async () => {
    if (csv === undefined) return;
    const { changed } = await importLabels(csv, false);
    notify(`The labels of ${countOf(changed, "access point")} were changed.`);
    onDone();
    onClose();
  });
  const error = apply.error ?? check.error;
  return (
    <Dialog title="Import labels" onClose={onClose}>
      <Form onSubmit={() => void apply.run()}>
        <Field id={id} label="CSV file" hint={HINT}>
          <input
            type="file"
            id={id}
            aria-describedby={`${id}-hint`}
            accept=".csv,text/csv"
            onChange={({ currentTarget }) => void check.run(currentTarget.files?.[0])}
          />
        </Field>
        <ImportErrors error={error} />
        <ChangePreview preview={preview} />
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class="primary"
            disabled={csv === undefined || preview?.changed === 0 || check.isBusy || apply.isBusy}
            aria-busy={check.isBusy || apply.isBusy}
          >
            {preview === undefined ? "Import" : `Change ${countOf(preview.changed, "access point")}`}
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}

/** Lists the invalid lines, or shows any other error. */
function ImportErrors({ error }: { error: Error | undefined }) {
  if (!(error instanceof ApiError) || error.fieldErrors.length === 0) return <Failed error={error} />;
  return (
    <div class="import-errors" role="alert">
      <p>
        {countOf(error.fieldErrors.length, "line")} cannot be imported. Nothing was changed. Correct the file, then
        choose it again.
      </p>
      <ul>
        {error.fieldErrors.map(({ msg }) => (
          <li key={msg}>{lineText(msg)}</li>
        ))}
      </ul>
    </div>
  );
}

/** The messages of the service contain the number of the line. */
function lineText(msg: string): string {
  const text = msg.replace(/^Value error, /, "");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
