import { useState } from "preact/hooks";
import type { EventType, Severity } from "../../../schemas/events.ts";
import type { Subscription, TargetKind } from "../../../schemas/subscriptions.ts";
import { createSubscription, updateSubscription } from "../../api/subscription-calls.ts";
import { session } from "../../app/session.ts";
import { Checkbox } from "../../components/choices.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Form, fieldErrorOf, SelectField, SubmitButton, TextField } from "../../components/form.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { SelectorField } from "../../selectors/selector-input.tsx";
import { problemIn } from "../../selectors/selector-text.ts";
import { EVENT_SUBJECTS, EVENT_TEXTS, EVENT_TYPES, SEVERITY_TEXTS } from "../events/event-text.ts";
import { WebhookSecret } from "./secret.tsx";
import {
  hasUrl,
  newSubscription,
  type SubscriptionDraft,
  subscriptionChange,
  subscriptionIn,
  toSubscriptionDraft,
} from "./subscription-draft.ts";
import { TARGET_TEXTS } from "./subscription-text.ts";

const TARGETS = Object.entries(TARGET_TEXTS) as [TargetKind, string][];
const SEVERITIES: readonly (readonly [Severity, string])[] = [
  ["info", "All"],
  ["warning", `${SEVERITY_TEXTS.warning} and ${SEVERITY_TEXTS.critical}`],
  ["critical", `Only ${SEVERITY_TEXTS.critical}`],
];

interface EditProps {
  /** Undefined: creates one. */
  subscription: Subscription | undefined;
  onDone(): void;
  onClose(): void;
}

/** Creates or changes a subscription. Then shows the key of a new webhook. */
export function EditSubscription({ subscription, onDone, onClose }: EditProps) {
  const [draft, setDraft] = useState(() =>
    subscription === undefined ? newSubscription() : toSubscriptionDraft(subscription),
  );
  const [secret, setSecret] = useState<string>();
  const { run, isBusy, error } = useAction(async () => {
    if (subscription === undefined) {
      const created = await createSubscription(subscriptionIn(draft));
      onDone();
      if (created.secret !== null) return setSecret(created.secret);
    } else {
      await updateSubscription(subscription.id, subscriptionChange(draft, subscription));
      onDone();
    }
    notify(`The notification ${draft.name.trim()} was saved.`);
    onClose();
  });
  const title = subscription === undefined ? "Create notification" : `Notification ${subscription.name}`;
  if (secret !== undefined)
    return (
      <Dialog title={title} onClose={onClose}>
        <WebhookSecret name={draft.name} secret={secret} onClose={onClose} />
      </Dialog>
    );
  const errors = {
    name: fieldErrorOf(error, "name"),
    address: fieldErrorOf(error, "address") ?? fieldErrorOf(error, "target"),
    selector: fieldErrorOf(error, "selector"),
  };
  const set = (change: Partial<SubscriptionDraft>) => setDraft({ ...draft, ...change });
  return (
    <Dialog title={title} onClose={onClose}>
      <Form onSubmit={() => void (problemIn(draft.selector) === undefined && run())}>
        <TextField
          label="Name"
          autocomplete="off"
          autofocus
          required
          maxLength={100}
          value={draft.name}
          onValue={(name) => set({ name })}
          error={errors.name}
        />
        {subscription === undefined && (
          <SelectField label="Send to" value={draft.kind} options={TARGETS} onValue={(kind) => set({ kind })} />
        )}
        <AddressField draft={draft} error={errors.address} onAddress={(address) => set({ address })} />
        <EventTypes chosen={draft.types} onChosen={(types) => set({ types })} />
        <SelectField
          label="Severity"
          value={draft.severity}
          options={SEVERITIES}
          onValue={(severity) => set({ severity })}
        />
        <SelectorField
          label="Access points (selector)"
          hint="Empty: all that you may see, and events about no access point."
          placeholder="site=uk/bristol/*"
          value={draft.selector}
          onValue={(selector) => set({ selector })}
          error={errors.selector}
        />
        {Object.values(errors).every((message) => message === undefined) && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>
            {subscription === undefined ? "Create notification" : "Save notification"}
          </SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}

function AddressField({
  draft: { kind, address },
  error,
  onAddress,
}: {
  draft: SubscriptionDraft;
  error: string | undefined;
  onAddress(address: string): void;
}) {
  const { isAdministrator = false, username = "" } = session.value ?? {};
  if (kind === "mqtt") return <p class="hint">The service chooses the topic. It is shown in the list.</p>;
  if (hasUrl(kind))
    return (
      <TextField
        label="Address (URL)"
        hint={
          kind === "webhook"
            ? "The service sends a POST request for each event. The address may contain a user name and a password, which are not shown again."
            : "The address of the Alertmanager, without /api/v2/alerts."
        }
        autocomplete="off"
        required
        placeholder={kind === "webhook" ? "https://example.com/events" : "https://alertmanager.example.com"}
        value={address}
        onValue={onAddress}
        error={error}
      />
    );
  return isAdministrator ? (
    <TextField
      label="E-mail address (optional)"
      hint={`Empty: ${username}`}
      type="email"
      autocomplete="off"
      value={address}
      onValue={onAddress}
      error={error}
    />
  ) : (
    <p class="hint">Sent to {username}.</p>
  );
}

/** Chooses types of events, by their subject. */
function EventTypes({
  chosen,
  onChosen,
}: {
  chosen: readonly EventType[];
  onChosen(chosen: readonly EventType[]): void;
}) {
  const isAll = chosen.length === 0;
  const choose = (type: EventType, isChosen: boolean) =>
    onChosen(EVENT_TYPES.filter((other) => (other === type ? isChosen : chosen.includes(other))));
  return (
    <fieldset class="choices event-types">
      <legend>Events</legend>
      <Checkbox
        label="All events"
        isChecked={isAll}
        onChecked={(isChecked) => onChosen(isChecked ? [] : ["alert.fired", "alert.resolved"])}
      />
      {!isAll &&
        EVENT_SUBJECTS.map(([subject, prefixes]) => {
          const types = EVENT_TYPES.filter((type) => prefixes.includes(type.split(".")[0] ?? ""));
          const count = types.filter((type) => chosen.includes(type)).length;
          return (
            <details key={subject} open={subject === "Alerts" || undefined}>
              <summary>
                {subject} <span class="soft">{count > 0 && `${count} of ${types.length}`}</span>
              </summary>
              {types.map((type) => (
                <Checkbox
                  key={type}
                  label={EVENT_TEXTS[type]}
                  isChecked={chosen.includes(type)}
                  onChecked={(isChecked) => choose(type, isChecked)}
                />
              ))}
            </details>
          );
        })}
    </fieldset>
  );
}
