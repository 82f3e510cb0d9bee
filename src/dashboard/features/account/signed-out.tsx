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
import { useLoaded } from "../../lib/load.ts";
import { own } from "../../lib/own.ts";
import { Recover, Reset } from "./forgotten-password.tsx";
import type { WayProps } from "./way-props.ts";

/** The ways in. Where somebody wanted to go stays in the address, so that signing in leads there. */

const PAGES: Record<string, { title: string; page: ComponentType<WayProps> }> = {
  "sign-up": { title: "Make an account", page: SignUp },
  recover: { title: "Forgotten password", page: Recover },
  "reset-password": { title: "Set a new password", page: Reset },
};
const SIGN_IN = { title: "Sign in", page: SignIn };

export function SignedOut() {
  const { path } = route.value;
  const { title, page: Page } = own(PAGES, path[0] ?? "") ?? SIGN_IN;
  const [username, setUsername] = useState("");
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} · Network Controller`;
    // The link that led here is gone, and the focus with it.
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

function SignIn({ username, onUsername }: WayProps) {
  const { data } = useLoaded(settings);
  const [password, setPassword] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    await signIn(username, password);
  });
  return (
    <>
      <Form onSubmit={() => void run()}>
        <TextField
          label="E-mail"
          type="email"
          autocomplete="username"
          required
          autofocus
          value={username}
          onValue={onUsername}
        />
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
        {data?.sign_up && <a href={href(["sign-up"])}>Make an account</a>}
        <a href={href(["recover"])}>Forgotten password</a>
      </p>
    </>
  );
}

function SignUp({ username, onUsername }: WayProps) {
  const [password, setPassword] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    await signUp({ username, password });
    await signIn(username, password);
    navigate([]);
  });
  const isTaken = error instanceof ApiError && error.status === 409;
  const faults = {
    username: isTaken ? "There is an account with this address. Sign in instead." : fieldErrorOf(error, "username"),
    password: fieldErrorOf(error, "password"),
  };
  return (
    <>
      <Form onSubmit={() => void run()}>
        <TextField
          label="E-mail"
          type="email"
          autocomplete="username"
          required
          value={username}
          onValue={onUsername}
          error={faults.username}
        />
        <TextField
          label="Password"
          hint={NEW_PASSWORD_HINT}
          {...NEW_PASSWORD}
          value={password}
          onValue={setPassword}
          error={faults.password}
        />
        {faults.username === undefined && faults.password === undefined && <Failed error={error} />}
        <SubmitButton isBusy={isBusy}>Make the account</SubmitButton>
      </Form>
      <p class="ways">
        <a href={href([])}>Sign in</a>
        {isTaken && <a href={href(["recover"])}>Forgotten password</a>}
      </p>
    </>
  );
}
