import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog.tsx";
import { Form, fieldErrorOf, SubmitButton } from "../../components/form.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { PasswordField } from "./password-field.tsx";

/** A new password for a user or an access point; `send` hands it to the service. */
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
  const fault = fieldErrorOf(error, "password");
  return (
    <Dialog title={`New password for ${name}`} onClose={onClose}>
      <p>{consequence}</p>
      <Form onSubmit={() => void run()}>
        <PasswordField autofocus value={password} onValue={setPassword} error={fault} />
        {fault === undefined && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>Set the password</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}
