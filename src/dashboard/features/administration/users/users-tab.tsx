import { useState } from "preact/hooks";
import type { TokenData } from "../../../../schemas/user.ts";
import { deleteUser, listUsers, updateUser } from "../../../api/operations.ts";
import { href } from "../../../app/router.ts";
import { session } from "../../../app/session.ts";
import { Confirm } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { useLoaded } from "../../../lib/load.ts";
import { ChangeGrants } from "../grants/grants-dialog.tsx";
import { RecordButton, RecordRow, Records } from "../records.tsx";
import { SetPassword } from "../secrets.tsx";
import { rolesOf, rolesText } from "./roles.ts";
import { ChangeRoles, CreateUser } from "./user-dialogs.tsx";

/** The dialog that is open, and the user that it changes. */
type OpenDialog = "create" | { action: "roles" | "grants" | "password" | "delete"; user: TokenData };

const nameOf = ({ username }: TokenData): string => username ?? "";

export function UsersTab() {
  const loaded = useLoaded(listUsers);
  const ownName = session.value?.username;
  const [dialog, setDialog] = useState<OpenDialog>();
  return (
    <>
      <Records
        noun={{ one: "user", many: "users" }}
        loaded={loaded}
        textOf={(user) => `${nameOf(user)} ${rolesText(user)}`}
        create={{ label: "Create user", onClick: () => setDialog("create") }}
        empty="Create the first user."
      >
        {(user) => <UserRow key={user.username} user={user} isOwn={nameOf(user) === ownName} onDialog={setDialog} />}
      </Records>
      {dialog && (
        <UserDialog dialog={dialog} ownName={ownName} onDone={loaded.refresh} onClose={() => setDialog(undefined)} />
      )}
    </>
  );
}

function UserRow({ user, isOwn, onDialog }: { user: TokenData; isOwn: boolean; onDialog(dialog: OpenDialog): void }) {
  const of = nameOf(user);
  return (
    <RecordRow
      name={
        <>
          {of} {isOwn && <span class="badge own">you</span>}
        </>
      }
      about={rolesText(user)}
    >
      <RecordButton label="Change roles" of={of} onClick={() => onDialog({ action: "roles", user })} />
      <RecordButton label="Change access" of={of} onClick={() => onDialog({ action: "grants", user })} />
      {isOwn ? (
        // Only that page keeps the session after a change of the password, and ends it after a deletion.
        <a class="button small" href={href(["account"])}>
          Your account
        </a>
      ) : (
        <>
          <RecordButton label="Set password" of={of} onClick={() => onDialog({ action: "password", user })} />
          <RecordButton label="Delete" of={of} isDangerous onClick={() => onDialog({ action: "delete", user })} />
        </>
      )}
    </RecordRow>
  );
}

function UserDialog({
  dialog,
  ownName,
  onDone,
  onClose,
}: {
  dialog: OpenDialog;
  ownName: string | undefined;
  onDone(): void;
  onClose(): void;
}) {
  if (dialog === "create") return <CreateUser {...{ onDone, onClose }} />;
  const { user } = dialog;
  const username = nameOf(user);
  switch (dialog.action) {
    case "roles":
      return <ChangeRoles {...{ user, username, onDone, onClose }} isOwn={username === ownName} />;
    case "grants":
      return (
        <ChangeGrants
          holder={{ kind: "users", name: username }}
          note={rolesOf(user).includes("admin") ? "Grants do not limit administrators." : undefined}
          onClose={onClose}
        />
      );
    case "password":
      return (
        <SetPassword
          name={username}
          consequence="The old password stops working, and the user is signed out everywhere."
          send={async (password) => {
            await updateUser(username, { password });
            notify(`The password of ${username} was changed.`);
          }}
          onClose={onClose}
        />
      );
    case "delete":
      return (
        <Confirm
          title={`Delete ${username}?`}
          label="Delete user"
          onConfirm={async () => {
            await deleteUser(username);
            notify(`${username} was deleted.`);
            onDone();
          }}
          onClose={onClose}
        >
          <p>
            This deletes the account of <strong>{username}</strong> and signs the user out everywhere. You cannot undo
            this.
          </p>
        </Confirm>
      );
  }
}
