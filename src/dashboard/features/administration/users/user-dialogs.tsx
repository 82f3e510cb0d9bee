import { useState } from "preact/hooks";
import type { TokenData } from "../../../../schemas/accounts/user.ts";
import { createUser, updateUser } from "../../../api/operations.ts";
import { renewal } from "../../../app/session.ts";
import { Choices } from "../../../components/choices.tsx";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, fieldErrorOf, SubmitButton, TextField } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { PasswordField } from "../secrets.tsx";
import { ROLES, type Role, rolesOf } from "./roles.ts";

export function CreateUser({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [roles, setRoles] = useState<Role[]>(["user"]);
  const { run, isBusy, error } = useAction(async () => {
    await createUser({ username, password, roles });
    notify(`${username} was created.`);
    onDone();
    onClose();
  });
  const fieldErrors = {
    username: fieldErrorOf(error, "username"),
    password: fieldErrorOf(error, "password"),
    roles: roles.length === 0 ? "Choose at least one role." : fieldErrorOf(error, "roles"),
  };
  return (
    <Dialog title="Create user" onClose={onClose}>
      <Form onSubmit={() => void (roles.length > 0 && run())}>
        <TextField
          label="E-mail"
          type="email"
          autocomplete="off"
          autofocus
          required
          value={username}
          onValue={setUsername}
          error={fieldErrors.username}
        />
        <PasswordField value={password} onValue={setPassword} error={fieldErrors.password} />
        <Choices legend="Roles" options={ROLES} chosen={roles} onChosen={setRoles} error={fieldErrors.roles} />
        {Object.values(fieldErrors).every((fieldError) => fieldError === undefined) && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>Create user</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}

export function ChangeRoles({
  user,
  username,
  isOwn,
  onDone,
  onClose,
}: {
  user: TokenData;
  username: string;
  isOwn: boolean;
  onDone(): void;
  onClose(): void;
}) {
  const [roles, setRoles] = useState(() => rolesOf(user));
  const { run, isBusy, error } = useAction(async () => {
    await updateUser(username, { roles });
    notify(`The roles of ${username} were changed.`);
    onDone();
    onClose();
    // The change of roles revoked the token of this page as well.
    if (isOwn) renewal.value = "due";
  });
  const fieldError = roles.length === 0 ? "Choose at least one role." : fieldErrorOf(error, "roles");
  return (
    <Dialog title={`Roles of ${username}`} onClose={onClose}>
      <p>
        {isOwn
          ? "This is your account. You have to sign in again afterwards."
          : "The user has to sign in again afterwards."}
      </p>
      <Form onSubmit={() => void (roles.length > 0 && run())}>
        <Choices legend="Roles" options={ROLES} chosen={roles} onChosen={setRoles} error={fieldError} />
        {fieldError === undefined && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>Change roles</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}
