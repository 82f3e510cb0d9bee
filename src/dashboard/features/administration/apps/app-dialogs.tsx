import { useState } from "preact/hooks";
import type { Permissions } from "../../../../schemas/accounts/app.ts";
import { createApp, updateApp } from "../../../api/operations.ts";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, fieldErrorOf, SubmitButton, TextField } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { newApiKey } from "../secrets.tsx";
import { AppKey } from "./app-key.tsx";
import { draftOf, isComplete, PermissionFields, permissionsOf } from "./app-permissions.tsx";

export function CreateApp({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const [created, setCreated] = useState<{ appName: string; apiKey: string }>();
  return (
    <Dialog title={created === undefined ? "Create app" : `${created.appName} was created`} onClose={onClose}>
      {created === undefined ? (
        <NewAppForm
          onCreated={(appName, apiKey) => {
            setCreated({ appName, apiKey });
            onDone();
          }}
          onClose={onClose}
        />
      ) : (
        <AppKey {...created} onClose={onClose} />
      )}
    </Dialog>
  );
}

function NewAppForm({ onCreated, onClose }: { onCreated(appName: string, apiKey: string): void; onClose(): void }) {
  const [appName, setAppName] = useState("");
  const [draft, setDraft] = useState(() => draftOf({}));
  const { run, isBusy, error } = useAction(async () => {
    const apiKey = newApiKey();
    await createApp({ app_name: appName, api_key: apiKey, permissions: permissionsOf(draft, {}) });
    notify(`${appName} was created.`);
    onCreated(appName, apiKey);
  });
  const fieldErrors = { appName: fieldErrorOf(error, "app_name"), apIds: fieldErrorOf(error, "ap_ids") };
  return (
    <Form onSubmit={() => void (isComplete(draft) && run())}>
      <TextField
        label="Name"
        hint="Up to 64 letters, digits and . _ : - characters. You cannot change it later."
        autocomplete="off"
        autofocus
        required
        pattern="[A-Za-z0-9._:\-]{1,64}"
        value={appName}
        onValue={setAppName}
        error={fieldErrors.appName}
      />
      <PermissionFields draft={draft} onDraft={setDraft} error={fieldErrors.apIds} />
      {fieldErrors.appName === undefined && fieldErrors.apIds === undefined && <Failed error={error} />}
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <SubmitButton isBusy={isBusy}>Create app</SubmitButton>
      </footer>
    </Form>
  );
}

export function ChangePermissions({
  appName,
  permissions,
  onDone,
  onClose,
}: {
  appName: string;
  permissions: Permissions;
  onDone(): void;
  onClose(): void;
}) {
  const [draft, setDraft] = useState(() => draftOf(permissions));
  const { run, isBusy, error } = useAction(async () => {
    await updateApp(appName, { permissions: permissionsOf(draft, permissions) });
    notify(`The permissions of ${appName} were changed.`);
    onDone();
    onClose();
  });
  const fieldError = fieldErrorOf(error, "ap_ids");
  return (
    <Dialog title={`Permissions of ${appName}`} onClose={onClose}>
      <p>The app has to log in again afterwards.</p>
      <Form onSubmit={() => void (isComplete(draft) && run())}>
        <PermissionFields draft={draft} onDraft={setDraft} error={fieldError} />
        {fieldError === undefined && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>Change permissions</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}
