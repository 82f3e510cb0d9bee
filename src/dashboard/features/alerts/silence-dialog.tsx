import { useState } from "preact/hooks";
import type { Alert } from "../../../schemas/alerts/alert.ts";
import { createSilence } from "../../api/alert-calls.ts";
import { serviceNowMs } from "../../api/clock.ts";
import { Dialog } from "../../components/dialog.tsx";
import { Form, fieldErrorOf, SelectField, SubmitButton, TextField } from "../../components/form.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { SelectorField } from "../../selectors/selector-input.tsx";
import { problemIn } from "../../selectors/selector-text.ts";
import { silenceChoices } from "./alert-groups.ts";

const DURATIONS: readonly (readonly [hours: string, text: string])[] = [
  ["1", "1 hour"],
  ["4", "4 hours"],
  ["24", "1 day"],
  ["168", "7 days"],
  ["720", "30 days"],
];
const HOUR_MS = 3_600_000;
const OTHER = "";

/** Silences alerts like this one. */
export function SilenceAlert({ alert, ...rest }: { alert: Alert; onDone(): void; onClose(): void }) {
  return <CreateSilence choices={silenceChoices(alert)} {...rest} />;
}

/** Creates a silence for one of the choices, or for any selector. */
export function CreateSilence({
  choices,
  onDone,
  onClose,
}: {
  choices: readonly (readonly [selector: string, text: string])[];
  onDone(): void;
  onClose(): void;
}) {
  const [choice, setChoice] = useState<string>(choices[0]?.[0] ?? OTHER);
  const [selector, setSelector] = useState(choice);
  const [hours, setHours] = useState<string>("4");
  const [reason, setReason] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    const until = new Date(serviceNowMs() + Number(hours) * HOUR_MS).toISOString();
    await createSilence({ selector: selector.trim(), until, reason: reason.trim() });
    notify("The silence was created.");
    onDone();
    onClose();
  });
  const fieldErrors = { selector: fieldErrorOf(error, "selector"), reason: fieldErrorOf(error, "reason") };
  const choose = (chosen: string) => {
    setChoice(chosen);
    if (chosen !== OTHER) setSelector(chosen);
  };
  return (
    <Dialog title="Silence alerts" onClose={onClose}>
      <Form onSubmit={() => void (problemIn(selector) === undefined && run())}>
        <p>
          While the silence lasts, these alerts send no notifications. An alert that still fires when it ends sends one
          then.
        </p>
        {choices.length > 0 && (
          <SelectField
            label="Alerts"
            value={choice}
            options={[...choices, [OTHER, "Other alerts"] as const]}
            onValue={choose}
          />
        )}
        {choice === OTHER && (
          <SelectorField
            label="Alerts (selector)"
            hint="By the labels of access points and rules, or by ap_id and rule_id. Empty: all alerts."
            value={selector}
            onValue={setSelector}
            error={fieldErrors.selector}
          />
        )}
        <SelectField label="Duration" value={hours} options={DURATIONS} onValue={setHours} />
        <TextField
          label="Reason (optional)"
          autocomplete="off"
          maxLength={500}
          value={reason}
          onValue={setReason}
          error={fieldErrors.reason}
        />
        {(fieldErrors.reason ?? (choice === OTHER ? fieldErrors.selector : undefined)) === undefined && (
          <Failed error={error} />
        )}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>Silence</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}
