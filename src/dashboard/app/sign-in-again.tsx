import { useState } from "preact/hooks";
import { signIn } from "../api/sign-in.ts";
import { Dialog } from "../components/dialog.tsx";
import { Form, SubmitButton, TextField } from "../components/form.tsx";
import { Failed } from "../components/states.tsx";
import { useAction } from "../lib/action.ts";
import { useObserved } from "../lib/observable.ts";
import { renewal, session, signOut } from "./session.ts";

/** Asks for the password before the token ends, over the page, which stays as it is. */
export function SignInAgain() {
  const due = useObserved(renewal);
  const [isPutOff, setIsPutOff] = useState(false);
  if (due === "none") {
    if (isPutOff) setIsPutOff(false);
    return null;
  }
  if (due === "soon" && isPutOff) return null;
  return <PasswordDialog isDue={due === "due"} onLater={() => setIsPutOff(true)} />;
}

function PasswordDialog({ isDue, onLater }: { isDue: boolean; onLater(): void }) {
  const username = useObserved(session)?.username ?? "";
  const [password, setPassword] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    await signIn(username, password);
  });
  return (
    <Dialog title="Sign in again" onClose={isDue ? undefined : onLater}>
      <p>{isDue ? "Your sign-in has ended." : "Your sign-in ends soon."} With your password you stay where you are.</p>
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
