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
import { rolesText } from "../administration/users/roles.ts";
import "../../style/administration.css";

/** One's own account. */
export function Account() {
  const username = session.value?.username ?? "";
  return (
    <div class="stack account-page">
      <h1>Your account</h1>
      <Myself username={username} />
      <ChangePassword username={username} />
      <DeleteAccount username={username} />
    </div>
  );
}

function Myself({ username }: { username: string }) {
  const { data, error, refresh } = useLoaded(me);
  return (
    <section class="card" aria-label="Who you are">
      <dl class="account-facts">
        <dt>E-mail</dt>
        <dd>{username}</dd>
        <dt>Roles</dt>
        <dd>{data === undefined ? "…" : rolesText(data)}</dd>
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
    await signInAnew(username, password);
  });
  const fault = fieldErrorOf(error, "password");
  return (
    <section class="card" aria-labelledby="change-password">
      <h2 id="change-password">Change your password</h2>
      <p>Everywhere else you have to sign in again with the new one.</p>
      <Form onSubmit={() => void run()}>
        {/* Tells password managers whose it is. */}
        <input type="email" autocomplete="username" value={username} readOnly hidden />
        <NewPasswordFields input={typed} onInput={setTyped} error={fault} />
        {fault === undefined && <Failed error={error} />}
        <footer>
          <SubmitButton isBusy={isBusy}>Change the password</SubmitButton>
        </footer>
      </Form>
    </section>
  );
}

/** A new password ends every token, this page's too; a person who has just typed it need not do so again. */
async function signInAnew(username: string, password: string): Promise<void> {
  try {
    await signIn(username, password);
    notify("Your password is changed.");
  } catch {
    signOut();
    notify("Your password is changed. Sign in with it.");
  }
}

function DeleteAccount({ username }: { username: string }) {
  const [isAsking, setIsAsking] = useState(false);
  return (
    <section class="card" aria-labelledby="delete-account">
      <h2 id="delete-account">Delete your account</h2>
      <p>It is gone for good.</p>
      <button type="button" class="deletes" onClick={() => setIsAsking(true)}>
        Delete my account…
      </button>
      {isAsking && (
        <Confirm
          title="Delete your account?"
          label="Delete my account"
          typed={username}
          onConfirm={async () => {
            await deleteUser(username);
            signOut();
            navigate([]);
            notify("Your account is deleted.");
          }}
          onClose={() => setIsAsking(false)}
        >
          <p>You are signed out at once, everywhere, and nobody can bring the account back.</p>
        </Confirm>
      )}
    </section>
  );
}
