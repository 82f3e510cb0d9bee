import { useState } from "preact/hooks";
import { deleteUser, me, updateUser } from "../../api/operations.ts";
import { signIn } from "../../api/sign-in.ts";
import { navigate } from "../../app/router.ts";
import { session, signOut } from "../../app/session.ts";
import { Confirm } from "../../components/dialog.tsx";
import { Form, fieldErrorOf, SubmitButton } from "../../components/form.tsx";
import { EMPTY_PASSWORD, NewPasswordFields } from "../../components/new-password.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { useLoaded } from "../../lib/load.ts";
import { grantsText, useOwnGrants } from "../../selectors/own-grants.ts";
import { rolesText } from "../administration/users/roles.ts";
import "../../style/administration.css";

/** The account of the person who is signed in. */
export function Account() {
  const username = session.value?.username ?? "";
  return (
    <div class="stack account-page">
      <h1>Your account</h1>
      <AccountDetails username={username} />
      <ChangePassword username={username} />
      <DeleteAccount username={username} />
    </div>
  );
}

function AccountDetails({ username }: { username: string }) {
  const { data, error, refresh } = useLoaded(me);
  const grants = useOwnGrants();
  return (
    <section class="card" aria-label="Account details">
      <dl class="account-facts">
        <dt>E-mail</dt>
        <dd>{username}</dd>
        <dt>Roles</dt>
        <dd>{data === undefined ? "…" : rolesText(data)}</dd>
        <dt>Access</dt>
        <dd>{grants === undefined ? "…" : grantsText(grants)}</dd>
      </dl>
      <Failed error={error} onRetry={refresh} />
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </section>
  );
}

function ChangePassword({ username }: { username: string }) {
  const [typed, setTyped] = useState(EMPTY_PASSWORD);
  const { run, isBusy, error } = useAction(async () => {
    const { password, repeated } = typed;
    if (password !== repeated) return;
    await updateUser(username, { password });
    setTyped(EMPTY_PASSWORD);
    await signInAgain(username, password);
  });
  const fieldError = fieldErrorOf(error, "password");
  return (
    <section class="card" aria-labelledby="change-password">
      <h2 id="change-password">Change your password</h2>
      <p>A new password signs you out everywhere else.</p>
      <Form onSubmit={() => void run()}>
        {/* Tells password managers which account the password belongs to. */}
        <input type="email" autocomplete="username" value={username} readOnly hidden />
        <NewPasswordFields input={typed} onInput={setTyped} error={fieldError} />
        {fieldError === undefined && <Failed error={error} />}
        <footer>
          <SubmitButton isBusy={isBusy}>Change password</SubmitButton>
        </footer>
      </Form>
    </section>
  );
}

/** Signs in with the password just typed: a new password revokes every token, including the one of this page. */
async function signInAgain(username: string, password: string): Promise<void> {
  try {
    await signIn(username, password);
    notify("Your password was changed.");
  } catch {
    signOut();
    notify("Your password was changed. Sign in with the new one.");
  }
}

function DeleteAccount({ username }: { username: string }) {
  const [isConfirming, setIsConfirming] = useState(false);
  return (
    <section class="card" aria-labelledby="delete-account">
      <h2 id="delete-account">Delete your account</h2>
      <p>A deleted account cannot be restored.</p>
      <button type="button" class="deletes" onClick={() => setIsConfirming(true)}>
        Delete account…
      </button>
      {isConfirming && (
        <Confirm
          title="Delete your account?"
          label="Delete account"
          typed={username}
          onConfirm={async () => {
            await deleteUser(username);
            signOut();
            navigate([]);
            notify("Your account was deleted.");
          }}
          onClose={() => setIsConfirming(false)}
        >
          <p>This signs you out everywhere and deletes your account. You cannot undo this.</p>
        </Confirm>
      )}
    </section>
  );
}
