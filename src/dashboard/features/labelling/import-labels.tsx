import { useId, useState } from "preact/hooks";
import { ApiError } from "../../api/call.ts";
import { importLabels } from "../../api/fleet-calls.ts";
import type { LabelsChanged } from "../../api/fleet-shapes.ts";
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
        {error.fieldErrors.map(({ loc, msg }, i) => (
          <li key={i}>{lineText(loc, msg)}</li>
        ))}
      </ul>
    </div>
  );
}

/** Returns a message with the number of its line, unless the message contains it. */
function lineText(loc: readonly (string | number)[], msg: string): string {
  const message = msg.replace(/^Value error, /, "");
  const line = loc.find((segment) => typeof segment === "number");
  return line === undefined || /\bline \d/i.test(message) ? message : `Line ${line}: ${message}`;
}
