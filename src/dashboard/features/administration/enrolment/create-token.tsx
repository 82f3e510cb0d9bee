import { useState } from "preact/hooks";
import { createEnrolmentToken } from "../../../api/fleet-calls.ts";
import { Copyable } from "../../../components/copy.tsx";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, fieldErrorOf, TextField } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { errorsIn, type LabelRow, labelsIn, newRow } from "../../../selectors/label-draft.ts";
import { LabelFields } from "../../../selectors/label-fields.tsx";

const EMPTY_DRAFT = { description: "", maxUses: "", expiresAt: "" };
type Draft = typeof EMPTY_DRAFT;

export function CreateToken({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const [token, setToken] = useState<string>();
  return (
    <Dialog title={token === undefined ? "Create enrolment token" : "The token was created"} onClose={onClose}>
      {token === undefined ? (
        <NewTokenForm
          onCreated={(created) => {
            setToken(created);
            onDone();
          }}
          onClose={onClose}
        />
      ) : (
        <NewToken token={token} onClose={onClose} />
      )}
    </Dialog>
  );
}

function NewTokenForm({ onCreated, onClose }: { onCreated(token: string): void; onClose(): void }) {
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const [rows, setRows] = useState<LabelRow[]>(() => [newRow()]);
  const change = (field: keyof Draft) => (value: string) => setDraft((before) => ({ ...before, [field]: value }));
  const isValid = errorsIn(rows).size === 0;
  const { run, isBusy, error } = useAction(async () => {
    const { description, maxUses, expiresAt } = draft;
    const { token } = await createEnrolmentToken({
      labels: labelsIn(rows),
      ...(description !== "" && { description }),
      ...(maxUses !== "" && { max_uses: Number(maxUses) }),
      // The field has the time zone of the browser.
      ...(expiresAt !== "" && { expires_at: new Date(expiresAt).toISOString() }),
    });
    notify("The enrolment token was created.");
    onCreated(token);
  });
  const fieldErrors = {
    description: fieldErrorOf(error, "description"),
    maxUses: fieldErrorOf(error, "max_uses"),
    expiresAt: fieldErrorOf(error, "expires_at"),
  };
  return (
    <Form onSubmit={() => void (isValid && run())}>
      <TextField
        label="Description (optional)"
        hint="What the token is for."
        autocomplete="off"
        autofocus
        maxLength={200}
        value={draft.description}
        onValue={change("description")}
        error={fieldErrors.description}
      />
      <LabelFields
        legend="Labels of new access points"
        hint="They must be within your own access."
        rows={rows}
        onRows={setRows}
      />
      <div class="side-by-side">
        <TextField
          label="Uses (optional)"
          type="number"
          {...{ min: 1, step: 1 }}
          hint="Empty: any number."
          value={draft.maxUses}
          onValue={change("maxUses")}
          error={fieldErrors.maxUses}
        />
        <TextField
          label="Expires (optional)"
          type="datetime-local"
          hint="Empty: never."
          value={draft.expiresAt}
          onValue={change("expiresAt")}
          error={fieldErrors.expiresAt}
        />
      </div>
      {Object.values(fieldErrors).every((fieldError) => fieldError === undefined) && <Failed error={error} />}
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={isBusy || !isValid} aria-busy={isBusy}>
          Create token
        </button>
      </footer>
    </Form>
  );
}

/** Shows a new token once, for copying. */
function NewToken({ token, onClose }: { token: string; onClose(): void }) {
  return (
    <div class="stack">
      <p>Copy the token now. It is not shown again.</p>
      <Copyable label="token" text={token} />
      <p class="soft">
        An access point sends it as bearer token when it registers: <code>POST /api/v1/agents/public</code>
      </p>
      <footer class="row">
        <button type="button" class="primary" onClick={onClose}>
          Done
        </button>
      </footer>
    </div>
  );
}
