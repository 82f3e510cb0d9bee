import { useId, useState } from "preact/hooks";
import type { LabelsChanged } from "../../../schemas/labels.ts";
import { changeManyLabels } from "../../api/fleet-calls.ts";
import { Dialog } from "../../components/dialog.tsx";
import { Form, fieldErrorOf, TextField } from "../../components/form.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { countOf } from "../../lib/format.ts";
import { errorsIn, keyProblem, type LabelRow, labelsIn, newRow } from "../../selectors/label-draft.ts";
import { LabelFields } from "../../selectors/label-fields.tsx";
import { SelectorField } from "../../selectors/selector-input.tsx";
import { vocabulary } from "../../selectors/vocabulary.ts";
import { ChangePreview } from "./change-preview.tsx";

/** Sets and removes labels on all access points of a selector, after a preview. */
export function BulkLabels({ selector, onDone, onClose }: { selector: string; onDone(): void; onClose(): void }) {
  const [chosen, setChosen] = useState(selector);
  const [rows, setRows] = useState<LabelRow[]>(() => [newRow()]);
  const [removed, setRemoved] = useState("");
  const [preview, setPreview] = useState<LabelsChanged>();
  const removedKeys = keysIn(removed);
  const changes = { ...Object.fromEntries(removedKeys.map((key) => [key, null])), ...labelsIn(rows) };
  const removedError = removedKeys.map(keyProblem).find((problem) => problem !== undefined);
  const isValid = Object.keys(changes).length > 0 && errorsIn(rows).size === 0 && removedError === undefined;
  const send = async (isDryRun: boolean) => {
    const request = { selector: chosen.trim(), labels: changes, dry_run: isDryRun };
    const result = await changeManyLabels(request);
    if (isDryRun) return setPreview(result);
    notify(`The labels of ${countOf(result.changed, "access point")} were changed.`);
    onDone();
    onClose();
  };
  const { run, isBusy, error } = useAction(send);
  const selectorError = fieldErrorOf(error, "selector");
  /** Any change makes the preview invalid. */
  const edit =
    <V,>(set: (value: V) => void) =>
    (value: V) => {
      set(value);
      setPreview(undefined);
    };
  const listId = useId();
  return (
    <Dialog title="Change labels" onClose={onClose}>
      <Form onSubmit={() => void (isValid && run(preview === undefined))}>
        <SelectorField
          label="Access points"
          hint="A selector. Empty: all access points. The search and the other filters of the overview do not apply."
          value={chosen}
          onValue={edit(setChosen)}
          error={selectorError}
        />
        <LabelFields
          legend="Set labels"
          hint="For example site and uk/bristol/library. Other labels stay unchanged."
          rows={rows}
          onRows={edit(setRows)}
        />
        <TextField
          label="Remove labels"
          hint="Keys, separated by commas."
          autocomplete="off"
          list={listId}
          value={removed}
          onValue={edit(setRemoved)}
          error={removedError}
        />
        <datalist id={listId}>
          {vocabulary.value.labels.map(({ key }) => (
            <option key={key} value={key} />
          ))}
        </datalist>
        {selectorError === undefined && <Failed error={error} />}
        <ChangePreview preview={preview} />
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class="primary"
            disabled={isBusy || !isValid || preview?.changed === 0}
            aria-busy={isBusy}
          >
            {preview === undefined ? "Preview" : `Change ${countOf(preview.changed, "access point")}`}
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}

const keysIn = (text: string): string[] => [...new Set(text.split(/[\s,]+/).filter(Boolean))];
