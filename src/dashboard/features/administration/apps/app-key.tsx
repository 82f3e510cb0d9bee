import { useState } from "preact/hooks";
import { updateApp } from "../../../api/operations.ts";
import { Copyable } from "../../../components/copy.tsx";
import { Dialog } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { newApiKey } from "../secrets.tsx";

/** Shows a new key once, for copying. */
export function AppKey({ appName, apiKey, onClose }: { appName: string; apiKey: string; onClose(): void }) {
  return (
    <div class="stack">
      <p>
        This is the key of <strong>{appName}</strong>. Copy it now. It is not shown again.
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

/** Replaces the key of an app with a new one. */
export function ReplaceKey({ appName, onClose }: { appName: string; onClose(): void }) {
  const [apiKey, setApiKey] = useState<string>();
  const { run, isBusy, error } = useAction(async () => {
    const created = newApiKey();
    await updateApp(appName, { api_key: created });
    notify(`The key of ${appName} was replaced.`);
    setApiKey(created);
  });
  return (
    <Dialog title={`Replace the key of ${appName}`} onClose={onClose}>
      {apiKey !== undefined ? (
        <AppKey {...{ appName, apiKey, onClose }} />
      ) : (
        <div class="stack">
          <p>The old key stops working at once. The app loses access until it logs in with the new key.</p>
          <Failed error={error} />
          <footer class="row">
            <button type="button" onClick={onClose}>
              Cancel
            </button>
            <button type="button" class="primary" disabled={isBusy} onClick={() => void run()}>
              Replace key
            </button>
          </footer>
        </div>
      )}
    </Dialog>
  );
}
