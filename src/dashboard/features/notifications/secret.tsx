import { useState } from "preact/hooks";
import type { Subscription } from "../../../schemas/subscriptions.ts";
import { replaceSecret } from "../../api/subscription-calls.ts";
import { Copyable } from "../../components/copy.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";

/** Shows the key of a webhook once, for copying. */
export function WebhookSecret({ name, secret, onClose }: { name: string; secret: string; onClose(): void }) {
  return (
    <div class="stack">
      <p>
        This is the key of <strong>{name}</strong>. Copy it now. It is not shown again.
      </p>
      <Copyable label="key" text={secret} />
      <p class="soft">
        The receiver verifies the header <code>webhook-signature</code> with it, as in Standard Webhooks.
      </p>
      <footer class="row">
        <button type="button" class="primary" onClick={onClose}>
          Done
        </button>
      </footer>
    </div>
  );
}

/** Replaces the key of a webhook's signatures. */
export function ReplaceSecret({
  subscription: { id, name },
  onClose,
}: {
  subscription: Subscription;
  onClose(): void;
}) {
  const [secret, setSecret] = useState<string>();
  const { run, isBusy, error } = useAction(async () => {
    setSecret((await replaceSecret(id)).secret ?? undefined);
    notify(`The key of ${name} was replaced.`);
  });
  return (
    <Dialog title={`Replace the key of ${name}`} onClose={onClose}>
      {secret !== undefined ? (
        <WebhookSecret {...{ name, secret, onClose }} />
      ) : (
        <div class="stack">
          <p>The receiver rejects events until it has the new key.</p>
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
