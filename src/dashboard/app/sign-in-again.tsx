import { useState } from "preact/hooks";
import { signIn } from "../api/sign-in.ts";
import { Dialog } from "../components/dialog.tsx";
import { Form, SubmitButton, TextField } from "../components/form.tsx";
import { Failed } from "../components/states.tsx";
import { useAction } from "../lib/action.ts";
import { renewal, session, signOut } from "./session.ts";

/** Asks for the password before the token expires. The dialog lies over the page, so that no input is lost. */
export function SignInAgain() {
  const due = renewal.value;
  const [isPostponed, setIsPostponed] = useState(false);
  if (due === "none") {
    if (isPostponed) setIsPostponed(false);
    return null;
  }
  if (due === "soon" && isPostponed) return null;
  return <PasswordDialog isDue={due === "due"} onPostpone={() => setIsPostponed(true)} />;
}

function PasswordDialog({ isDue, onPostpone }: { isDue: boolean; onPostpone(): void }) {
  const username = session.value?.username ?? "";
  const [password, setPassword] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    await signIn(username, password);
  });
  return (
    <Dialog title="Sign in again" onClose={isDue ? undefined : onPostpone}>
      <p>
        {isDue ? "Your sign-in has expired." : "Your sign-in expires soon."} Enter your password to stay on this page.
      </p>
      <Form onSubmit={() => void run()}>
        <TextField label="E-mail" type="email" autocomplete="username" readOnly value={username} onValue={() => {}} />
        <TextField
          label="Password"
          type="password"
          autocomplete="current-password"
          required
          autofocus
          value={password}
          onValue={setPassword}
        />
        <Failed error={error} />
        <footer>
          <button type="button" onClick={signOut}>
            Sign out
          </button>
          <SubmitButton isBusy={isBusy}>Stay signed in</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}
