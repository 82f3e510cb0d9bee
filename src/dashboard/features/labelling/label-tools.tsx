import { useState } from "preact/hooks";
import { exportLabels } from "../../api/fleet-calls.ts";
import { may } from "../../app/session.ts";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { saveFile } from "../../lib/browser.ts";
import { expireVocabulary } from "../../selectors/vocabulary.ts";
import { BulkLabels } from "./bulk-labels.tsx";
import { ImportLabels } from "./import-labels.tsx";

/** Buttons that change, import and export the labels of many access points. */
export function LabelTools({ selector, onChanged }: { selector: string; onChanged(): void }) {
  const [dialog, setDialog] = useState<"labels" | "import">();
  const { run, isBusy, error } = useAction(async () => {
    saveFile("labels.csv", "text/csv", [await exportLabels(selector)]);
  });
  const close = () => setDialog(undefined);
  const changed = () => {
    expireVocabulary();
    onChanged();
  };
  return (
    <div class="row">
      {may("agents:manage") && (
        <>
          <button type="button" class="small" onClick={() => setDialog("labels")}>
            Change labels…
          </button>
          <button type="button" class="small" onClick={() => setDialog("import")}>
            Import labels…
          </button>
        </>
      )}
      <button type="button" class="small" disabled={isBusy} onClick={() => void run()}>
        Export labels
      </button>
      <Failed error={error} />
      {dialog === "labels" && <BulkLabels selector={selector} onDone={changed} onClose={close} />}
      {dialog === "import" && <ImportLabels onDone={changed} onClose={close} />}
    </div>
  );
}
