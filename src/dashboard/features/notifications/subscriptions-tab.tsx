import { useEffect, useState } from "preact/hooks";
import type { Subscription } from "../../../schemas/subscriptions.ts";
import {
  deleteSubscription,
  listSubscriptions,
  resumeSubscription,
  testSubscription,
} from "../../api/subscription-calls.ts";
import { session } from "../../app/session.ts";
import { Confirm } from "../../components/dialog.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { Ago, timeText } from "../../components/time.tsx";
import { useAction } from "../../lib/action.ts";
import { useLoaded } from "../../lib/load.ts";
import { parseIdentifier } from "../administration/audit/audit-text.ts";
import { RecordButton, RecordRow, Records } from "../administration/records.tsx";
import { ReplaceSecret } from "./secret.tsx";
import { EditSubscription } from "./subscription-dialog.tsx";
import { backlogText, deliveryState, filterText, TARGET_TEXTS } from "./subscription-text.ts";

/** The dialog that is open, and the subscription that it changes. */
type OpenDialog = "create" | { action: "edit" | "delete" | "secret"; subscription: Subscription };

/** Backlogs and errors change without this page. */
const INTERVAL_MS = 10_000;

/** Who is notified of which events, and how the deliveries go. Administrators also see those of others. */
export function SubscriptionsTab() {
  const loaded = useLoaded(listSubscriptions);
  const { refresh } = loaded;
  const [dialog, setDialog] = useState<OpenDialog>();
  const close = () => setDialog(undefined);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) refresh();
    }, INTERVAL_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <Records
        noun={{ one: "notification", many: "notifications" }}
        loaded={loaded}
        textOf={({ name, owner, target }) => `${name} ${owner} ${target.address}`}
        create={{ label: "Create notification", onClick: () => setDialog("create") }}
        empty="A notification sends events, such as alerts, to an e-mail address, a webhook, an MQTT topic or an Alertmanager."
      >
        {(subscription) => (
          <SubscriptionRow key={subscription.id} {...{ subscription }} onDialog={setDialog} onChanged={refresh} />
        )}
      </Records>
      {dialog === "create" && <EditSubscription subscription={undefined} onDone={refresh} onClose={close} />}
      {typeof dialog === "object" && dialog.action === "edit" && (
        <EditSubscription subscription={dialog.subscription} onDone={refresh} onClose={close} />
      )}
      {typeof dialog === "object" && dialog.action === "secret" && (
        <ReplaceSecret subscription={dialog.subscription} onClose={close} />
      )}
      {typeof dialog === "object" && dialog.action === "delete" && (
        <Confirm
          title={`Delete the notification ${dialog.subscription.name}?`}
          label="Delete notification"
          onConfirm={async () => {
            await deleteSubscription(dialog.subscription.id);
            notify(`The notification ${dialog.subscription.name} was deleted.`);
            refresh();
          }}
          onClose={close}
        >
          <p>Events that wait are not sent. You cannot undo this.</p>
        </Confirm>
      )}
    </>
  );
}

function SubscriptionRow({
  subscription,
  onDialog,
  onChanged,
}: {
  subscription: Subscription;
  onDialog(dialog: OpenDialog): void;
  onChanged(): void;
}) {
  const { id, name, owner, filter, target, stopped_at } = subscription;
  const test = useAction(async () => {
    const { delivered, error } = await testSubscription(id);
    onChanged();
    if (!delivered) throw new Error(`The test was not delivered: ${error ?? "no reason given"}`);
    notify(`The test of ${name} was delivered.`);
  });
  const resume = useAction(async () => {
    await resumeSubscription(id);
    notify(`The notification ${name} continues.`);
    onChanged();
  });
  const isOwn = parseIdentifier(owner).name === session.value?.username;
  return (
    <RecordRow
      name={
        <>
          {name}
          <div class="subscription-target">
            {TARGET_TEXTS[target.kind]} <code>{target.address}</code>
          </div>
        </>
      }
      about={
        <>
          <div>{filterText(filter)}</div>
          {!isOwn && <div>of {owner}</div>}
          <Delivery subscription={subscription} />
          <Failed error={test.error ?? resume.error} />
        </>
      }
    >
      {stopped_at !== null && <RecordButton label="Resume" of={name} onClick={() => void resume.run()} />}
      <button
        type="button"
        class="small"
        disabled={test.isBusy}
        aria-label={`Test: ${name}`}
        onClick={() => void test.run()}
      >
        {test.isBusy ? "Testing…" : "Test"}
      </button>
      {target.kind === "webhook" && (
        <RecordButton label="Replace key" of={name} onClick={() => onDialog({ action: "secret", subscription })} />
      )}
      <RecordButton label="Edit" of={name} onClick={() => onDialog({ action: "edit", subscription })} />
      <RecordButton label="Delete" of={name} isDangerous onClick={() => onDialog({ action: "delete", subscription })} />
    </RecordRow>
  );
}

/** How the delivery goes: the last one, what waits, and why it fails. */
function Delivery({ subscription }: { subscription: Subscription }) {
  const { delivered_at, backlog, last_error, failing_since, next_attempt_at, stopped_at } = subscription;
  const state = deliveryState(subscription);
  return (
    <div class="delivery">
      <span class={`delivery-state ${state}`}>
        {state === "stopped" && (
          <>
            Stopped <Ago ts={stopped_at} />
          </>
        )}
        {state === "failing" && (
          <>
            Failing since <Ago ts={failing_since} />
          </>
        )}
        {state === "working" && (
          <>
            Delivered <Ago ts={delivered_at} />
          </>
        )}
        {state === "new" && "Nothing delivered yet"}
      </span>{" "}
      · {backlogText(backlog)}
      {last_error !== null && <div class="delivery-error">{last_error}</div>}
      {state === "failing" && next_attempt_at !== null && <div>Next attempt at {timeText(next_attempt_at)}</div>}
      {state !== "working" && delivered_at !== null && (
        <div>
          Last delivered <Ago ts={delivered_at} />
        </div>
      )}
    </div>
  );
}
