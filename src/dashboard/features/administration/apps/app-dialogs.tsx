import { useState } from "preact/hooks";
import type { Permissions } from "../../../../schemas/app.ts";
import { createApp, updateApp } from "../../../api/operations.ts";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, fieldErrorOf, SubmitButton, TextField } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { newApiKey } from "../secrets.ts";
import { AppKey } from "./app-key.tsx";
import { draftOf, isComplete, PermissionFields, permissionsOf } from "./app-permissions.tsx";

export function CreateApp({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const [made, setMade] = useState<{ appName: string; apiKey: string }>();
  return (
    <Dialog title={made === undefined ? "New app" : `${made.appName} is registered`} onClose={onClose}>
      {made === undefined ? (
        <Registration
          onRegistered={(appName, apiKey) => {
            setMade({ appName, apiKey });
            onDone();
          }}
          onClose={onClose}
        />
      ) : (
        <AppKey {...made} onClose={onClose} />
      )}
    </Dialog>
  );
}

function Registration({
  onRegistered,
  onClose,
}: {
  onRegistered(appName: string, apiKey: string): void;
  onClose(): void;
}) {
  const [appName, setAppName] = useState("");
  const [draft, setDraft] = useState(() => draftOf({}));
  const { run, isBusy, error } = useAction(async () => {
    const apiKey = newApiKey();
    await createApp({ app_name: appName, api_key: apiKey, permissions: permissionsOf(draft, {}) });
    notify(`${appName} is registered.`);
    onRegistered(appName, apiKey);
  });
  const faults = { appName: fieldErrorOf(error, "app_name"), apIds: fieldErrorOf(error, "ap_ids") };
  return (
    <Form onSubmit={() => void (isComplete(draft) && run())}>
      <TextField
        label="Name"
        hint="Letters, digits and . _ : - up to 64. It cannot be changed later."
        autocomplete="off"
        autofocus
        required
        pattern="[A-Za-z0-9._:\-]{1,64}"
        value={appName}
        onValue={setAppName}
        error={faults.appName}
      />
      <PermissionFields draft={draft} onDraft={setDraft} error={faults.apIds} />
      {faults.appName === undefined && faults.apIds === undefined && <Failed error={error} />}
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <SubmitButton isBusy={isBusy}>Create the app</SubmitButton>
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
    notify(`The permissions of ${appName} are changed.`);
    onDone();
    onClose();
  });
  const fault = fieldErrorOf(error, "ap_ids");
  return (
    <Dialog title={`Permissions of ${appName}`} onClose={onClose}>
      <p>The app has to log in again afterwards.</p>
      <Form onSubmit={() => void (isComplete(draft) && run())}>
        <PermissionFields draft={draft} onDraft={setDraft} error={fault} />
        {fault === undefined && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>Change the permissions</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}
