import { useState } from "preact/hooks";
import { changeLabels } from "../../api/fleet-calls.ts";
import { href } from "../../app/router.ts";
import { Dialog } from "../../components/dialog.tsx";
import { Form } from "../../components/form.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { changesBetween, errorsIn, isServiceLabel, newRow, rowsOf } from "../../selectors/label-draft.ts";
import { LabelChips, LabelFields, LabelText } from "../../selectors/label-fields.tsx";
import { expireVocabulary } from "../../selectors/vocabulary.ts";

type Labels = Readonly<Record<string, string>>;

/** Shows the labels of an access point. Each links to all access points with that label. */
export function AgentLabels({
  apId,
  labels,
  mayChange,
  onChanged,
}: {
  apId: string;
  labels: Labels;
  mayChange: boolean;
  onChanged(): void;
}) {
  const [isEditing, setIsEditing] = useState(false);
  return (
    <div class="row agent-labels">
      <ul class="label-chips" aria-label="Labels">
        {Object.entries(labels)
          .sort(
            ([one], [other]) => Number(isServiceLabel(one)) - Number(isServiceLabel(other)) || (one < other ? -1 : 1),
          )
          .map(([key, value]) => (
            <li key={key}>
              <a class="label-chip" href={href([], { selector: `${key}=${value}` })}>
                <LabelText name={key} value={value} />
              </a>
            </li>
          ))}
      </ul>
      {mayChange && (
        <button type="button" class="small" onClick={() => setIsEditing(true)}>
          Edit labels
        </button>
      )}
      {isEditing && <EditLabels {...{ apId, labels, onChanged }} onClose={() => setIsEditing(false)} />}
    </div>
  );
}

function EditLabels({
  apId,
  labels,
  onChanged,
  onClose,
}: {
  apId: string;
  labels: Labels;
  onChanged(): void;
  onClose(): void;
}) {
  const [before] = useState(labels);
  const [rows, setRows] = useState(() => {
    const existing = rowsOf(labels);
    return existing.length > 0 ? existing : [newRow()];
  });
  const ofService = Object.fromEntries(Object.entries(before).filter(([key]) => isServiceLabel(key)));
  const isValid = errorsIn(rows).size === 0;
  const { run, isBusy, error } = useAction(async () => {
    const changes = changesBetween(before, rows);
    if (Object.keys(changes).length > 0) {
      await changeLabels(apId, changes);
      notify(`The labels of ${apId} were changed.`);
      expireVocabulary();
      onChanged();
    }
    onClose();
  });
  return (
    <Dialog title={`Labels of ${apId}`} onClose={onClose}>
      <Form onSubmit={() => void (isValid && run())}>
        <LabelFields
          legend="Labels"
          hint="Values may be paths, such as uk/bristol/library."
          rows={rows}
          onRows={setRows}
        />
        <div>
          <p class="hint">The service sets these labels. They cannot be changed.</p>
          <LabelChips labels={ofService} />
        </div>
        <Failed error={error} />
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isBusy || !isValid} aria-busy={isBusy}>
            Save labels
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}
