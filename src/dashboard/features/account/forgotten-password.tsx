import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../../api/call.ts";
import { recoverPassword, resetPassword } from "../../api/operations.ts";
import { href, navigate, route } from "../../app/router.ts";
import { Form, fieldErrorOf, SubmitButton, TextField } from "../../components/form.tsx";
import { EMPTY_PASSWORD, NewPasswordFields } from "../../components/new-password.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import type { WayProps } from "./way-props.ts";

/** A link by e-mail, and a new password by that link. */

export function Recover({ username, onUsername }: WayProps) {
  const [said, setSaid] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    setSaid((await recoverPassword(username)).detail);
  });
  if (said !== "")
    return (
      <>
        <p role="status">{said} The link in it works once, for 15 minutes.</p>
        <BackToSignIn />
      </>
    );
  return (
    <>
      <p>A link to set a new password is sent to your e-mail address.</p>
      <Form onSubmit={() => void run()}>
        <TextField
          label="E-mail"
          type="email"
          autocomplete="username"
          required
          value={username}
          onValue={onUsername}
          error={fieldErrorOf(error, "username")}
        />
        {fieldErrorOf(error, "username") === undefined && <Failed error={error} />}
        <SubmitButton isBusy={isBusy}>Send the link</SubmitButton>
      </Form>
      <BackToSignIn />
    </>
  );
}

export function Reset() {
  const given = route.value.path[1];
  const [token, setToken] = useState(given ?? "");
  useEffect(() => {
    if (given === undefined) return;
    setToken(given);
    // The token is as good as a password for a while: out of the address, and of the browser's history.
    history.replaceState(null, "", href(["reset-password"]));
  }, [given]);
  if (token === "")
    return (
      <>
        <p>This link is incomplete. Open the one in the message again, or ask for a new one.</p>
        <AskForLink />
      </>
    );
  // Another link is another try.
  return <ResetBy key={token} token={token} />;
}

function ResetBy({ token }: { token: string }) {
  const [typed, setTyped] = useState(EMPTY_PASSWORD);
  const { run, isBusy, error } = useAction(async () => {
    if (typed.password !== typed.repeated) return;
    await resetPassword(token, typed.password);
    notify("The new password is set. Sign in with it.");
    navigate([]);
  });
  const fault = fieldErrorOf(error, "new_password");
  if (error instanceof ApiError && error.status === 400)
    return (
      <>
        <p role="alert">This link is of no use any more: it was used, or its 15 minutes are over.</p>
        <AskForLink />
      </>
    );
  return (
    <Form onSubmit={() => void run()}>
      <NewPasswordFields input={typed} onInput={setTyped} error={fault} />
      {fault === undefined && <Failed error={error} />}
      <SubmitButton isBusy={isBusy}>Set the password</SubmitButton>
    </Form>
  );
}

function AskForLink() {
  return (
    <p class="ways">
      <a href={href(["recover"])}>Ask for a new link</a>
      <a href={href([])}>Sign in</a>
    </p>
  );
}

function BackToSignIn() {
  return (
    <p class="ways">
      <a href={href([])}>Sign in</a>
    </p>
  );
}
