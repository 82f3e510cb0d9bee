import { useState } from "preact/hooks";
import { createAgent } from "../../../api/operations.ts";
import { Copyable } from "../../../components/copy.tsx";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, fieldErrorOf, SelectField, SubmitButton, TextArea, TextField } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { PasswordField } from "../password-field.tsx";
import { type Configuration, configurationFault, readConfiguration } from "./configuration.ts";

const TECHNOLOGIES = [
  ["", "Not said"],
  ["5G", "5G"],
  ["WiFi", "WiFi"],
  ["LiFi", "LiFi"],
  ["other", "Another one"],
] as const;

const BLANK = { apId: "", password: "", technology: "", otherTechnology: "", latitude: "", longitude: "", further: "" };
type Draft = typeof BLANK;

export function RegisterAccessPoint({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const [registered, setRegistered] = useState<string>();
  return (
    <Dialog
      title={registered === undefined ? "Register an access point" : `${registered} is registered`}
      onClose={onClose}
    >
      {registered === undefined ? (
        <Registration
          onRegistered={(apId) => {
            setRegistered(apId);
            onDone();
          }}
          onClose={onClose}
        />
      ) : (
        <FirstSteps apId={registered} onClose={onClose} />
      )}
    </Dialog>
  );
}

function Registration({ onRegistered, onClose }: { onRegistered(apId: string): void; onClose(): void }) {
  const [draft, setDraft] = useState(BLANK);
  const change = (field: keyof Draft) => (value: string) => setDraft((before) => ({ ...before, [field]: value }));
  const further = readConfiguration(draft.further);
  const { run, isBusy, error } = useAction(async () => {
    if ("fault" in further) return;
    const { apId, password } = draft;
    await createAgent({ ap_id: apId, password, configuration: configurationOf(draft, further.value) });
    notify(`${apId} is registered.`);
    onRegistered(apId);
  });
  const faults = {
    apId: fieldErrorOf(error, "ap_id"),
    password: fieldErrorOf(error, "password"),
    latitude: fieldErrorOf(error, "geolocation", "latitude"),
    longitude: fieldErrorOf(error, "geolocation", "longitude"),
  };
  const isAtField = Object.values(faults).some((fault) => fault !== undefined);
  const otherFault = isAtField ? undefined : configurationFault(error);
  return (
    <Form onSubmit={() => void run()}>
      <TextField
        label="Name (ap_id)"
        hint="Letters, digits and . _ : - up to 64. It cannot be changed later."
        autocomplete="off"
        autofocus
        required
        pattern="[A-Za-z0-9._:\-]{1,64}"
        value={draft.apId}
        onValue={change("apId")}
        error={faults.apId}
      />
      <PasswordField value={draft.password} onValue={change("password")} error={faults.password} />
      <SelectField label="Technology" options={TECHNOLOGIES} value={draft.technology} onValue={change("technology")} />
      {draft.technology === "other" && (
        <TextField
          label="Which technology"
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
          error={faults.latitude}
        />
        <TextField
          label="Longitude (optional)"
          type="number"
          {...{ min: -180, max: 180, step: "any" }}
          required={draft.latitude !== ""}
          value={draft.longitude}
          onValue={change("longitude")}
          error={faults.longitude}
        />
      </div>
      <TextArea
        label="Further configuration (JSON, optional)"
        rows={4}
        value={draft.further}
        onValue={change("further")}
        error={"fault" in further ? further.fault : otherFault}
      />
      {!isAtField && otherFault === undefined && <Failed error={error} />}
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <SubmitButton isBusy={isBusy}>Register</SubmitButton>
      </footer>
    </Form>
  );
}

/** What has a field of its own wins over what the text says of it. */
function configurationOf(draft: Draft, further: Configuration): Configuration {
  const { latitude, longitude } = draft;
  const technology = draft.technology === "other" ? draft.otherTechnology : draft.technology;
  return {
    ...further,
    ...(technology !== "" && { access_point_type: technology }),
    ...(latitude !== "" && { geolocation: { latitude: Number(latitude), longitude: Number(longitude) } }),
  };
}

/** How it comes to life. The password is not in it: it has left the page with the form. */
function FirstSteps({ apId, onClose }: { apId: string; onClose(): void }) {
  const command = `SERVICE_URL=${location.origin} AP_ID=${apId} AP_PASSWORD='its password' npm run agent`;
  return (
    <div class="stack">
      <p>
        It shows as new until it logs in for the first time. The reference agent makes any machine an access point: in a
        copy of the project, with the password that you have just set,
      </p>
      <Copyable label="command" text={command} />
      <p>
        Authors of agents find the rest in the <a href="/docs">API reference</a>.
      </p>
      <footer class="row">
        <button type="button" class="primary" onClick={onClose}>
          Done
        </button>
      </footer>
    </div>
  );
}
