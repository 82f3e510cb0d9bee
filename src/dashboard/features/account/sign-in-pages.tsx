import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../../api/call.ts";
import { settings, signUp } from "../../api/operations.ts";
import { signIn } from "../../api/sign-in.ts";
import { href, navigate, route } from "../../app/router.ts";
import { Form, fieldErrorOf, SubmitButton, TextField } from "../../components/form.tsx";
import { NEW_PASSWORD, NEW_PASSWORD_HINT } from "../../components/new-password.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { own } from "../../lib/format.ts";
import { useLoaded } from "../../lib/load.ts";
import { EmailField, type SignInPageProps } from "./email-field.tsx";
import { RequestResetLink, ResetPassword } from "./forgotten-password.tsx";

/** Pages without a session, by the first segment of the path. Any other path shows the sign-in page. */
const PAGES: Record<string, { title: string; page: ComponentType<SignInPageProps> }> = {
  "sign-up": { title: "Create an account", page: SignUp },
  recover: { title: "Reset your password", page: RequestResetLink },
  "reset-password": { title: "Set a new password", page: ResetPassword },
};
const SIGN_IN = { title: "Sign in", page: SignIn };

/** Shows the pages for people who are not signed in. Keeps the address, so that a sign-in leads to the requested page. */
export function SignInPages() {
  const { path } = route.value;
  const { title, page: Page } = own(PAGES, path[0] ?? "") ?? SIGN_IN;
  const [username, setUsername] = useState("");
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} · Network Controller`;
    // The link that led here is no longer on the page, so the focus would be lost.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [title]);
  return (
    <main class="entrance" ref={main} tabIndex={-1}>
      <p class="brand">
        <span aria-hidden="true" />
        Multi-Access Network Controller
      </p>
      <h1>{title}</h1>
      <Page key={title} username={username} onUsername={setUsername} />
    </main>
  );
}

function SignIn({ username, onUsername }: SignInPageProps) {
  const { data } = useLoaded(settings);
  const [password, setPassword] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    await signIn(username, password);
  });
  return (
    <>
      <Form onSubmit={() => void run()}>
        <EmailField {...{ username, onUsername }} autofocus />
        <TextField
          label="Password"
          type="password"
          autocomplete="current-password"
          required
          value={password}
          onValue={setPassword}
        />
        <Failed error={error} />
        <SubmitButton isBusy={isBusy}>Sign in</SubmitButton>
      </Form>
      <p class="ways">
        {data?.sign_up && <a href={href(["sign-up"])}>Create an account</a>}
        <a href={href(["recover"])}>Forgot your password?</a>
      </p>
    </>
  );
}

function SignUp({ username, onUsername }: SignInPageProps) {
  const [password, setPassword] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    await signUp({ username, password });
    await signIn(username, password);
    navigate([]);
  });
  const isTaken = error instanceof ApiError && error.status === 409;
  const fieldErrors = {
    username: isTaken
      ? "An account with this address already exists. Sign in instead."
      : fieldErrorOf(error, "username"),
    password: fieldErrorOf(error, "password"),
  };
  return (
    <>
      <Form onSubmit={() => void run()}>
        <EmailField {...{ username, onUsername }} error={fieldErrors.username} />
        <TextField
          label="Password"
          hint={NEW_PASSWORD_HINT}
          {...NEW_PASSWORD}
          value={password}
          onValue={setPassword}
          error={fieldErrors.password}
        />
        {fieldErrors.username === undefined && fieldErrors.password === undefined && <Failed error={error} />}
        <SubmitButton isBusy={isBusy}>Create account</SubmitButton>
      </Form>
      <p class="ways">
        <a href={href([])}>Sign in</a>
        {isTaken && <a href={href(["recover"])}>Forgot your password?</a>}
      </p>
    </>
  );
}
