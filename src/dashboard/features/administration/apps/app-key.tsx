import { useState } from "preact/hooks";
import { updateApp } from "../../../api/operations.ts";
import { Copyable } from "../../../components/copy.tsx";
import { Dialog } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { newApiKey } from "../secrets.ts";

/** A key that has just been made, to be handed on. */
export function AppKey({ appName, apiKey, onClose }: { appName: string; apiKey: string; onClose(): void }) {
  return (
    <div class="stack">
      <p>
        This is the key of <strong>{appName}</strong>. Copy it now: this page does not show it again.
      </p>
      <Copyable label="key" text={apiKey} />
      <p class="soft">
        The app logs in with its name and this key: <code>POST /api/v1/token/?login_type=third_party_app</code>
      </p>
      <footer class="row">
        <button type="button" class="primary" onClick={onClose}>
          Done
        </button>
      </footer>
    </div>
  );
}

/** Another key in place of the old one. */
export function NewKey({ appName, onClose }: { appName: string; onClose(): void }) {
  const [apiKey, setApiKey] = useState<string>();
  const { run, isBusy, error } = useAction(async () => {
    const made = newApiKey();
    await updateApp(appName, { api_key: made });
    notify(`${appName} has a new key.`);
    setApiKey(made);
  });
  return (
    <Dialog title={`New key for ${appName}`} onClose={onClose}>
      {apiKey !== undefined ? (
        <AppKey {...{ appName, apiKey, onClose }} />
      ) : (
        <div class="stack">
          <p>The old key ends at once. The app is cut off until it logs in with the new one.</p>
          <Failed error={error} />
          <footer class="row">
            <button type="button" onClick={onClose}>
              Cancel
            </button>
            <button type="button" class="primary" disabled={isBusy} onClick={() => void run()}>
              Make a new key
            </button>
          </footer>
        </div>
      )}
    </Dialog>
  );
}
