import { useId, useState } from "preact/hooks";
import { Copyable } from "../../components/copy.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { controlProps, Field, Form, fieldErrorOf, SubmitButton } from "../../components/form.tsx";
import { NEW_PASSWORD, NEW_PASSWORD_HINT } from "../../components/new-password.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";

/** Passwords and keys that an administrator sets for other accounts. */

/** Returns random bytes in base64url, which needs no escaping anywhere. */
function randomText(bytes: number): string {
  const random = crypto.getRandomValues(new Uint8Array(bytes));
  return btoa(String.fromCharCode(...random))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Returns 20 characters: too many to guess, few enough to type. */
const newPassword = (): string => randomText(15);

export const newApiKey = (): string => randomText(32);

/** A password for another account, typed or generated. Shows a generated one until the form closes, for copying. */
export function PasswordField({
  value,
  onValue,
  error,
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
  const hint = isGenerated ? "Copy the password now. It is not shown again." : NEW_PASSWORD_HINT;
  const generate = () => {
    const password = newPassword();
    setGenerated(password);
    onValue(password);
  };
  return (
    <Field id={id} label="Password" hint={hint} error={error}>
      <div class="with-button">
        <input
          {...controlProps(id, hint, error)}
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

/** Sets a new password for a user or an access point. `send` passes it to the service. */
export function SetPassword({
  name,
  consequence,
  send,
  onClose,
}: {
  name: string;
  consequence: string;
  send(password: string): Promise<void>;
  onClose(): void;
}) {
  const [password, setPassword] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    await send(password);
    onClose();
  });
  const fieldError = fieldErrorOf(error, "password");
  return (
    <Dialog title={`Set a new password for ${name}`} onClose={onClose}>
      <p>{consequence}</p>
      <Form onSubmit={() => void run()}>
        <PasswordField autofocus value={password} onValue={setPassword} error={fieldError} />
        {fieldError === undefined && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>Set password</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}
