import { useId, useState } from "preact/hooks";
import { changeGrants, type GrantHolder, readGrants } from "../../../api/fleet-calls.ts";
import type { GrantRole, Grants } from "../../../api/fleet-shapes.ts";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, fieldErrorOf, SelectField } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed, Loading } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { useLoaded } from "../../../lib/load.ts";
import { SelectorField } from "../../../selectors/selector-input.tsx";
import { draftOf, type GrantDraft, type GrantRow, grantsOf, isValid, newGrant, ROLE_TEXTS } from "./grant-draft.ts";

interface GrantsProps {
  holder: GrantHolder;
  /** A remark about this account. */
  note?: string | undefined;
  onClose(): void;
}

/** Changes which access points a user or an app may see, operate and manage. */
export function ChangeGrants(props: GrantsProps) {
  const { holder, onClose } = props;
  const { data, error, refresh } = useLoaded((signal) => readGrants(holder, signal), [holder.kind, holder.name]);
  return (
    <Dialog title={`Access of ${holder.name}`} onClose={onClose}>
      <Failed error={error} onRetry={refresh} />
      {data !== undefined && <GrantsForm {...props} grants={data} />}
      {data === undefined && error === undefined && <Loading lines={6} />}
    </Dialog>
  );
}

function GrantsForm({ holder, note, grants, onClose }: GrantsProps & { grants: Grants }) {
  const [draft, setDraft] = useState(() => draftOf(grants));
  const { run, isBusy, error } = useAction(async () => {
    await changeGrants(holder, grantsOf(draft));
    notify(`The access of ${holder.name} was changed.`);
    onClose();
  });
  const rowErrors = draft.rows.map((_, i) => fieldErrorOf(error, i, "selector"));
  return (
    <Form onSubmit={() => void (isValid(draft) && run())}>
      {note !== undefined && <p class="hint">{note}</p>}
      <Limits draft={draft} onDraft={setDraft} />
      {draft.isLimited && (
        <GrantRows rows={draft.rows} errors={rowErrors} onRows={(rows) => setDraft({ ...draft, rows })} />
      )}
      {rowErrors.every((rowError) => rowError === undefined) && <Failed error={error} />}
      <p class="hint">A change takes effect within seconds. The account has to sign in again afterwards.</p>
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={isBusy || !isValid(draft)} aria-busy={isBusy}>
          Change access
        </button>
      </footer>
    </Form>
  );
}

function Limits({ draft, onDraft }: { draft: GrantDraft; onDraft(draft: GrantDraft): void }) {
  const id = useId();
  const options = [
    { isLimited: false, label: "Operator of all access points", hint: "The default. Sees all and sends commands." },
    { isLimited: true, label: "Only what these grants allow", hint: "And the access points that it emulates." },
  ];
  return (
    <fieldset class="choices">
      <legend>Access points</legend>
      {options.map(({ isLimited, label, hint }, i) => (
        <div class="choice" key={label}>
          <input
            type="radio"
            name={id}
            id={`${id}-${i}`}
            aria-describedby={`${id}-${i}-hint`}
            checked={draft.isLimited === isLimited}
            onChange={() => onDraft({ ...draft, isLimited })}
          />
          <label for={`${id}-${i}`}>{label}</label>
          <p class="hint" id={`${id}-${i}-hint`}>
            {hint}
          </p>
        </div>
      ))}
    </fieldset>
  );
}

function GrantRows({
  rows,
  errors,
  onRows,
}: {
  rows: readonly GrantRow[];
  errors: readonly (string | undefined)[];
  onRows(rows: readonly GrantRow[]): void;
}) {
  const change = (changed: GrantRow) => onRows(rows.map((row) => (row.id === changed.id ? changed : row)));
  return (
    <div class="stack">
      {rows.length === 0 && <p class="hint">No grants: the account sees only the access points that it emulates.</p>}
      {rows.map((row, i) => (
        <fieldset class="grant" key={row.id}>
          <legend>Grant {i + 1}</legend>
          <SelectField<GrantRole>
            label="Role"
            options={ROLE_TEXTS}
            value={row.role}
            onValue={(role) => change({ ...row, role })}
          />
          <SelectorField
            label="Access points (selector)"
            hint={row.selector.trim() === "" ? "Empty: all access points." : undefined}
            placeholder="site=uk/bristol/*"
            value={row.selector}
            onValue={(selector) => change({ ...row, selector })}
            error={errors[i]}
          />
          <button type="button" class="small" onClick={() => onRows(rows.filter(({ id }) => id !== row.id))}>
            Remove grant {i + 1}
          </button>
        </fieldset>
      ))}
      <div>
        <button type="button" onClick={() => onRows([...rows, newGrant()])}>
          Add grant
        </button>
      </div>
    </div>
  );
}
