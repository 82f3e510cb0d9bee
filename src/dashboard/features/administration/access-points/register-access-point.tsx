import { useState } from "preact/hooks";
import { ApiError } from "../../../api/call.ts";
import { createAgent } from "../../../api/operations.ts";
import { Copyable } from "../../../components/copy.tsx";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, fieldErrorOf, SelectField, SubmitButton, TextArea, TextField } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { errorsIn, type LabelRow, labelsIn } from "../../../selectors/label-draft.ts";
import { LabelFields } from "../../../selectors/label-fields.tsx";
import { PasswordField } from "../secrets.tsx";
import { type Configuration, configurationError, parseConfiguration } from "./configuration-text.ts";

const TECHNOLOGIES = [
  ["", "Not specified"],
  ["5G", "5G"],
  ["WiFi", "WiFi"],
  ["LiFi", "LiFi"],
  ["other", "Other"],
] as const;

const EMPTY_DRAFT = {
  apId: "",
  password: "",
  technology: "",
  otherTechnology: "",
  latitude: "",
  longitude: "",
  moreConfiguration: "",
};
type Draft = typeof EMPTY_DRAFT;

export function RegisterAccessPoint({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const [registered, setRegistered] = useState<string>();
  return (
    <Dialog
      title={registered === undefined ? "Register access point" : `${registered} was registered`}
      onClose={onClose}
    >
      {registered === undefined ? (
        <RegistrationForm
          onRegistered={(apId) => {
            setRegistered(apId);
            onDone();
          }}
          onClose={onClose}
        />
      ) : (
        <NextSteps apId={registered} onClose={onClose} />
      )}
    </Dialog>
  );
}

function RegistrationForm({ onRegistered, onClose }: { onRegistered(apId: string): void; onClose(): void }) {
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const [labels, setLabels] = useState<LabelRow[]>([]);
  const change = (field: keyof Draft) => (value: string) => setDraft((before) => ({ ...before, [field]: value }));
  const moreConfiguration = parseConfiguration(draft.moreConfiguration);
  const { run, isBusy, error } = useAction(async () => {
    if ("error" in moreConfiguration || errorsIn(labels).size > 0) return;
    const { apId, password } = draft;
    const configuration = configurationOf(draft, moreConfiguration.value);
    await createAgent({ ap_id: apId, password, configuration, labels: labelsIn(labels) });
    notify(`${apId} was registered.`);
    onRegistered(apId);
  });
  const isTaken = error instanceof ApiError && error.status === 409;
  const fieldErrors = {
    apId: isTaken
      ? "An access point with this name already exists. Choose another name."
      : fieldErrorOf(error, "ap_id"),
    password: fieldErrorOf(error, "password"),
    latitude: fieldErrorOf(error, "geolocation", "latitude"),
    longitude: fieldErrorOf(error, "geolocation", "longitude"),
  };
  const hasFieldError = Object.values(fieldErrors).some((fieldError) => fieldError !== undefined);
  const otherError = hasFieldError ? undefined : configurationError(error);
  return (
    <Form onSubmit={() => void run()}>
      <TextField
        label="Name (ap_id)"
        hint="Up to 64 letters, digits and . _ : - characters. You cannot change it later."
        autocomplete="off"
        autofocus
        required
        pattern="[A-Za-z0-9._:\-]{1,64}"
        value={draft.apId}
        onValue={change("apId")}
        error={fieldErrors.apId}
      />
      <PasswordField value={draft.password} onValue={change("password")} error={fieldErrors.password} />
      <SelectField label="Technology" options={TECHNOLOGIES} value={draft.technology} onValue={change("technology")} />
      {draft.technology === "other" && (
        <TextField
          label="Technology name"
          required
          maxLength={64}
          value={draft.otherTechnology}
          onValue={change("otherTechnology")}
        />
      )}
      <div class="side-by-side">
        <TextField
          label="Latitude (optional)"
          type="number"
          {...{ min: -90, max: 90, step: "any" }}
          required={draft.longitude !== ""}
          value={draft.latitude}
          onValue={change("latitude")}
          error={fieldErrors.latitude}
        />
        <TextField
          label="Longitude (optional)"
          type="number"
          {...{ min: -180, max: 180, step: "any" }}
          required={draft.latitude !== ""}
          value={draft.longitude}
          onValue={change("longitude")}
          error={fieldErrors.longitude}
        />
      </div>
      <LabelFields legend="Labels (optional)" rows={labels} onRows={setLabels} />
      <TextArea
        label="More configuration (JSON, optional)"
        rows={4}
        value={draft.moreConfiguration}
        onValue={change("moreConfiguration")}
        error={"error" in moreConfiguration ? moreConfiguration.error : otherError}
      />
      {!hasFieldError && otherError === undefined && <Failed error={error} />}
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <SubmitButton isBusy={isBusy}>Register access point</SubmitButton>
      </footer>
    </Form>
  );
}

/** Merges the form into one configuration. The fields of the form take precedence over the JSON text. */
function configurationOf(draft: Draft, moreConfiguration: Configuration): Configuration {
  const { latitude, longitude } = draft;
  const technology = draft.technology === "other" ? draft.otherTechnology : draft.technology;
  return {
    ...moreConfiguration,
    ...(technology !== "" && { access_point_type: technology }),
    ...(latitude !== "" && { geolocation: { latitude: Number(latitude), longitude: Number(longitude) } }),
  };
}

/** Explains how to connect the access point. The page no longer has the password, so the command contains a placeholder. */
function NextSteps({ apId, onClose }: { apId: string; onClose(): void }) {
  const command = `SERVICE_URL=${location.origin} AP_ID=${apId} AP_PASSWORD='its password' npm run agent`;
  return (
    <div class="stack">
      <p>
        The access point is shown as new until it logs in for the first time. To connect a machine as this access point,
        run this command in a copy of the project, with the password that you have just set:
      </p>
      <Copyable label="command" text={command} />
      <p>
        To connect other devices, see the <a href="/docs">API reference</a>.
      </p>
      <footer class="row">
        <button type="button" class="primary" onClick={onClose}>
          Done
        </button>
      </footer>
    </div>
  );
}
