import { useEffect, useId } from "preact/hooks";
import { errorsIn, type LabelRow, newRow } from "./label-draft.ts";
import { refreshVocabulary, vocabulary } from "./vocabulary.ts";

/** A label as a chip. Screen readers read “key is value”. */
export function LabelText({ name, value }: { name: string; value: string }) {
  return (
    <>
      <span class="label-key">{name}</span>
      <span class="hidden-text"> is </span>
      <span class="label-value">{value}</span>
    </>
  );
}

/** Shows labels as chips. */
export function LabelChips({ labels }: { labels: Readonly<Record<string, string>> }) {
  return (
    <ul class="label-chips">
      {Object.entries(labels).map(([key, value]) => (
        <li key={key} class="label-chip">
          <LabelText name={key} value={value} />
        </li>
      ))}
    </ul>
  );
}

/** Rows of keys and values, with suggestions. The caller checks `errorsIn` before it uses the rows. */
export function LabelFields({
  legend,
  hint,
  rows,
  onRows,
}: {
  legend: string;
  hint?: string;
  rows: readonly LabelRow[];
  onRows(rows: LabelRow[]): void;
}) {
  const id = useId();
  useEffect(() => void refreshVocabulary(), []);
  const errors = errorsIn(rows);
  const change = (changed: LabelRow) => onRows(rows.map((row) => (row.id === changed.id ? changed : row)));
  return (
    <fieldset class="label-fields" aria-describedby={hint === undefined ? undefined : `${id}-hint`}>
      <legend>{legend}</legend>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {rows.map((row, i) => (
        <LabelRowFields
          key={row.id}
          row={row}
          name={row.key.trim() || `label ${i + 1}`}
          // A row that is being typed shows its errors when both parts have text.
          errors={row.key === "" || row.value === "" ? undefined : errors.get(row.id)}
          onRow={change}
          onRemove={() => onRows(rows.filter(({ id }) => id !== row.id))}
        />
      ))}
      <button type="button" class="small" onClick={() => onRows([...rows, newRow()])}>
        Add label
      </button>
    </fieldset>
  );
}

function LabelRowFields({
  row,
  name,
  errors,
  onRow,
  onRemove,
}: {
  row: LabelRow;
  name: string;
  errors: { key?: string; value?: string } | undefined;
  onRow(row: LabelRow): void;
  onRemove(): void;
}) {
  const id = useId();
  const { labels } = vocabulary.value;
  const values = labels.find(({ key }) => key === row.key.trim())?.values ?? [];
  const message = errors?.key ?? errors?.value;
  return (
    <div class="label-row">
      <input
        type="text"
        aria-label={`Key of ${name}`}
        aria-invalid={errors?.key !== undefined}
        aria-describedby={message === undefined ? undefined : `${id}-error`}
        placeholder="key"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        list={`${id}-keys`}
        value={row.key}
        onInput={({ currentTarget }) => onRow({ ...row, key: currentTarget.value })}
      />
      <input
        type="text"
        aria-label={`Value of ${name}`}
        aria-invalid={errors?.value !== undefined}
        aria-describedby={message === undefined ? undefined : `${id}-error`}
        placeholder="value"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        list={`${id}-values`}
        value={row.value}
        onInput={({ currentTarget }) => onRow({ ...row, value: currentTarget.value })}
      />
      <button type="button" class="quiet" aria-label={`Remove ${name}`} onClick={onRemove}>
        ✕
      </button>
      <datalist id={`${id}-keys`}>
        {labels.map(({ key }) => (
          <option key={key} value={key} />
        ))}
      </datalist>
      <datalist id={`${id}-values`}>
        {values.map(({ value }) => (
          <option key={value} value={value} />
        ))}
      </datalist>
      {message !== undefined && (
        <p class="field-error" id={`${id}-error`}>
          {message}
        </p>
      )}
    </div>
  );
}
