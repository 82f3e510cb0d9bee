import { useId, useState } from "preact/hooks";
import { Copyable } from "../../components/copy.tsx";
import { controlProps, Field } from "../../components/form.tsx";
import { NEW_PASSWORD, NEW_PASSWORD_HINT } from "../../components/new-password.tsx";
import { newPassword } from "./secrets.ts";

/** A password for somebody else, typed or made up here. A made-up one shows until the form is gone, to be handed on. */
export function PasswordField({
  value,
  onValue,
  error: fault,
  autofocus = false,
}: {
  value: string;
  onValue(value: string): void;
  error: string | undefined;
  autofocus?: boolean;
}) {
  const id = useId();
  const [generated, setGenerated] = useState("");
  const isGenerated = value !== "" && value === generated;
  const hint = isGenerated ? "Copy it now: it is not shown again." : NEW_PASSWORD_HINT;
  const generate = () => {
    const made = newPassword();
    setGenerated(made);
    onValue(made);
  };
  return (
    <Field id={id} label="Password" hint={hint} error={fault}>
      <div class="with-button">
        <input
          {...controlProps(id, hint, fault)}
          {...NEW_PASSWORD}
          autofocus={autofocus}
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
        </div>
      )}
    </Field>
  );
}
