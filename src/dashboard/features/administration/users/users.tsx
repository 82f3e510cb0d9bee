import { useState } from "preact/hooks";
import type { TokenData } from "../../../../schemas/user.ts";
import { deleteUser, listUsers, updateUser } from "../../../api/operations.ts";
import { href } from "../../../app/router.ts";
import { session } from "../../../app/session.ts";
import { Confirm } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { useLoaded } from "../../../lib/load.ts";
import { RecordButton, RecordRow, Records } from "../records.tsx";
import { SetPassword } from "../set-password.tsx";
import { rolesText } from "./roles.ts";
import { ChangeRoles, CreateUser } from "./user-dialogs.tsx";

/** What is being done, and to whom. */
type Doing = "create" | { what: "roles" | "password" | "delete"; user: TokenData };

const nameOf = ({ username }: TokenData): string => username ?? "";

export function Users() {
  const loaded = useLoaded(listUsers);
  const oneself = session.value?.username;
  const [doing, setDoing] = useState<Doing>();
  return (
    <>
      <Records
        what={{ one: "user", many: "users" }}
        loaded={loaded}
        textOf={(user) => `${nameOf(user)} ${rolesText(user)}`}
        create={{ label: "New user", onClick: () => setDoing("create") }}
        empty="Create the first one."
      >
        {(user) => <UserRow key={user.username} user={user} isOneself={nameOf(user) === oneself} onDoing={setDoing} />}
      </Records>
      {doing && <Deed doing={doing} oneself={oneself} onDone={loaded.refresh} onClose={() => setDoing(undefined)} />}
    </>
  );
}

function UserRow({ user, isOneself, onDoing }: { user: TokenData; isOneself: boolean; onDoing(doing: Doing): void }) {
  const of = nameOf(user);
  return (
    <RecordRow
      name={
        <>
          {of} {isOneself && <span class="badge own">you</span>}
        </>
      }
      about={rolesText(user)}
    >
      <RecordButton label="Roles" of={of} onClick={() => onDoing({ what: "roles", user })} />
      {isOneself ? (
        // One's own password and end are dealt with there, so that the sign-in outlives the one and ends with the other.
        <a class="button small" href={href(["account"])}>
          Your account
        </a>
      ) : (
        <>
          <RecordButton label="Password" of={of} onClick={() => onDoing({ what: "password", user })} />
          <RecordButton label="Delete" of={of} isDangerous onClick={() => onDoing({ what: "delete", user })} />
        </>
      )}
    </RecordRow>
  );
}

function Deed({
  doing,
  oneself,
  onDone,
  onClose,
}: {
  doing: Doing;
  oneself: string | undefined;
  onDone(): void;
  onClose(): void;
}) {
  if (doing === "create") return <CreateUser {...{ onDone, onClose }} />;
  const { user } = doing;
  const username = nameOf(user);
  switch (doing.what) {
    case "roles":
      return <ChangeRoles {...{ user, username, onDone, onClose }} isOneself={username === oneself} />;
    case "password":
      return (
        <SetPassword
          name={username}
          consequence="The old password ends, and so do all sign-ins with it."
          send={async (password) => {
            await updateUser(username, { password });
            notify(`${username} has a new password.`);
          }}
          onClose={onClose}
        />
      );
    case "delete":
      return (
        <Confirm
          title={`Delete ${username}?`}
          label="Delete the user"
          onConfirm={async () => {
            await deleteUser(username);
            notify(`${username} is deleted.`);
            onDone();
          }}
          onClose={onClose}
        >
          <p>
            The account of <strong>{username}</strong> is gone for good, and all sign-ins with it end.
          </p>
        </Confirm>
      );
  }
}
