import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../../api/call.ts";
import { recoverPassword, resetPassword } from "../../api/operations.ts";
import { href, navigate, route } from "../../app/router.ts";
import { Form, fieldErrorOf, SubmitButton } from "../../components/form.tsx";
import { EMPTY_PASSWORD, NewPasswordFields } from "../../components/new-password.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { EmailField, type SignInPageProps } from "./email-field.tsx";

/** Asks for an e-mail address and sends a reset link to it. */
export function RequestResetLink({ username, onUsername }: SignInPageProps) {
  const [confirmation, setConfirmation] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    setConfirmation((await recoverPassword(username)).detail);
  });
  if (confirmation !== "")
    return (
      <>
        <p role="status">{confirmation} The link works once and expires after 15 minutes.</p>
        <SignInLink />
      </>
    );
  return (
    <>
      <p>Enter your e-mail address to receive a link for setting a new password.</p>
      <Form onSubmit={() => void run()}>
        <EmailField {...{ username, onUsername }} error={fieldErrorOf(error, "username")} />
        {fieldErrorOf(error, "username") === undefined && <Failed error={error} />}
        <SubmitButton isBusy={isBusy}>Send link</SubmitButton>
      </Form>
      <SignInLink />
    </>
  );
}

/** Sets a new password with the token of a reset link. */
export function ResetPassword() {
  const tokenInAddress = route.value.path[1];
  const [token, setToken] = useState(tokenInAddress ?? "");
  useEffect(() => {
    if (tokenInAddress === undefined) return;
    setToken(tokenInAddress);
    // The token is as good as a password until it expires: remove it from the address and the browser's history.
    history.replaceState(null, "", href(["reset-password"]));
  }, [tokenInAddress]);
  if (token === "")
    return (
      <>
        <p>This link is incomplete. Open the link in the e-mail again, or request a new one.</p>
        <RequestLinkAgain />
      </>
    );
  // A second link starts with an empty form.
  return <ResetForm key={token} token={token} />;
}

function ResetForm({ token }: { token: string }) {
  const [typed, setTyped] = useState(EMPTY_PASSWORD);
  const { run, isBusy, error } = useAction(async () => {
    if (typed.password !== typed.repeated) return;
    await resetPassword(token, typed.password);
    notify("Your new password is set. Sign in with it.");
    navigate([]);
  });
  const fieldError = fieldErrorOf(error, "new_password");
  if (error instanceof ApiError && error.status === 400)
    return (
      <>
        <p role="alert">This link has expired or was already used. Request a new one.</p>
        <RequestLinkAgain />
      </>
    );
  return (
    <Form onSubmit={() => void run()}>
      <NewPasswordFields input={typed} onInput={setTyped} error={fieldError} />
      {fieldError === undefined && <Failed error={error} />}
      <SubmitButton isBusy={isBusy}>Set password</SubmitButton>
    </Form>
  );
}

function RequestLinkAgain() {
  return (
    <p class="ways">
      <a href={href(["recover"])}>Request a new link</a>
      <a href={href([])}>Sign in</a>
    </p>
  );
}

function SignInLink() {
  return (
    <p class="ways">
      <a href={href([])}>Sign in</a>
    </p>
  );
}
