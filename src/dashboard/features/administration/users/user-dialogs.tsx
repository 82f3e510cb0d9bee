import { useState } from "preact/hooks";
import type { TokenData } from "../../../../schemas/user.ts";
import { createUser, updateUser } from "../../../api/operations.ts";
import { renewal } from "../../../app/session.ts";
import { Choices } from "../../../components/choices.tsx";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, fieldErrorOf, SubmitButton, TextField } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { PasswordField } from "../password-field.tsx";
import { ROLES, type Role, rolesOf } from "./roles.ts";

export function CreateUser({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [roles, setRoles] = useState<Role[]>(["user"]);
  const { run, isBusy, error } = useAction(async () => {
    await createUser({ username, password, roles });
    notify(`${username} has an account now.`);
    onDone();
    onClose();
  });
  const faults = {
    username: fieldErrorOf(error, "username"),
    password: fieldErrorOf(error, "password"),
    roles: roles.length === 0 ? "Choose at least one." : fieldErrorOf(error, "roles"),
  };
  return (
    <Dialog title="New user" onClose={onClose}>
      <Form onSubmit={() => void (roles.length > 0 && run())}>
        <TextField
          label="E-mail"
          type="email"
          autocomplete="off"
          autofocus
          required
          value={username}
          onValue={setUsername}
          error={faults.username}
        />
        <PasswordField value={password} onValue={setPassword} error={faults.password} />
        <Choices legend="Roles" options={ROLES} chosen={roles} onChosen={setRoles} error={faults.roles} />
        {Object.values(faults).every((fault) => fault === undefined) && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>Create the user</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}

export function ChangeRoles({
  user,
  username,
  isOneself,
  onDone,
  onClose,
}: {
  user: TokenData;
  username: string;
  isOneself: boolean;
  onDone(): void;
  onClose(): void;
}) {
  const [roles, setRoles] = useState(() => rolesOf(user));
  const { run, isBusy, error } = useAction(async () => {
    await updateUser(username, { roles });
    notify(`The roles of ${username} are changed.`);
    onDone();
    onClose();
    // One's own token has ended with them.
    if (isOneself) renewal.value = "due";
  });
  const fault = roles.length === 0 ? "Choose at least one." : fieldErrorOf(error, "roles");
  return (
    <Dialog title={`Roles of ${username}`} onClose={onClose}>
      <p>{isOneself ? "This is your own account: you" : "They"} have to sign in again afterwards.</p>
      <Form onSubmit={() => void (roles.length > 0 && run())}>
        <Choices legend="Roles" options={ROLES} chosen={roles} onChosen={setRoles} error={fault} />
        {fault === undefined && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>Change the roles</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}
