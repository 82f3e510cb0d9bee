import { useId, useState } from "preact/hooks";
import { Copyable } from "../parts/copy.tsx";
import { described, Field } from "../parts/form.tsx";
import { newPassword } from "./secrets.ts";

const HINT = "At least 8 characters.";

/** A password for somebody else, typed or made up here. A made-up one shows until the form is gone, to be handed on. */
export function PasswordField({
  value,
  onValue,
  fault,
}: {
  value: string;
  onValue(value: string): void;
  fault: string | undefined;
}) {
  const id = useId();
  const [generated, setGenerated] = useState("");
  const isGenerated = value !== "" && value === generated;
  const generate = () => {
    const made = newPassword();
    setGenerated(made);
    onValue(made);
  };
  return (
    <Field id={id} label="Password" hint={HINT} fault={fault}>
      <div class="with-button">
        <input
          {...described(id, HINT, fault)}
          type="password"
          // The browser is not to fill in the administrator's own.
          autocomplete="new-password"
          required
          minLength={8}
          maxLength={128}
          value={value}
          onInput={({ currentTarget }) => onValue(currentTarget.value)}
        />
        <button type="button" onClick={generate}>
          Generate
        </button>
      </div>
      {isGenerated && (
        <div class="secret" role="status">
          <Copyable label="password" text={value} />
          <p class="hint">Copy it now: it is not shown again.</p>
        </div>
      )}
    </Field>
  );
}
