import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { recoverPassword, resetPassword, signUp } from "../api/operations.ts";
import { useAction } from "../live/action.ts";
import { useObserved } from "../observable.ts";
import { Form, faultOf, SubmitButton, TextField } from "../parts/form.tsx";
import { tell } from "../parts/notices.tsx";
import { Failed } from "../parts/states.tsx";
import { go, href, place } from "../router.ts";
import { signIn } from "../session.ts";

/** The ways in. Where somebody wanted to go stays in the address, so that signing in leads there. */

const PASSWORD = { minLength: 8, maxLength: 128, required: true } as const;

const PAGES: Record<string, { title: string; page: ComponentType }> = {
  "sign-up": { title: "Make an account", page: SignUp },
  recover: { title: "Forgotten password", page: Recover },
  "reset-password": { title: "Set a new password", page: Reset },
};
const SIGN_IN = { title: "Sign in", page: SignIn };

export function SignedOut() {
  const { path } = useObserved(place);
  const { title, page: Page } = PAGES[path[0] ?? ""] ?? SIGN_IN;
  useEffect(() => {
    document.title = `${title} · Network Controller`;
  }, [title]);
  return (
    <main class="entrance">
      <p class="brand">
        <span aria-hidden="true" />
        Multi-Access Network Controller
      </p>
      <h1>{title}</h1>
      <Page key={title} />
    </main>
  );
}

function SignIn() {
  const [username, setUsername] = useState("");
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
          {...{ value: username }}
          onValue={setUsername}
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
        <a href={href(["sign-up"])}>Make an account</a>
        <a href={href(["recover"])}>Forgotten password</a>
      </p>
    </>
  );
}

function SignUp() {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const { run, isBusy, error } = useAction(async () => {
    await signUp({ username, password });
    await signIn(username, password);
    go([]);
  });
  const faults = { username: faultOf(error, "username"), password: faultOf(error, "password") };
  return (
    <>
      <Form onSubmit={() => void run()}>
        <TextField
          label="E-mail"
          type="email"
          autocomplete="username"
          required
          value={username}
          onValue={setUsername}
          fault={faults.username}
        />
        <TextField
          label="Password"
          hint="At least 8 characters."
          type="password"
          autocomplete="new-password"
          {...PASSWORD}
          value={password}
          onValue={setPassword}
          fault={faults.password}
        />
        {faults.username === undefined && faults.password === undefined && <Failed error={error} />}
        <SubmitButton isBusy={isBusy}>Make the account</SubmitButton>
      </Form>
      <BackToSignIn />
    </>
  );
}

function Recover() {
  const [username, setUsername] = useState("");
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
          onValue={setUsername}
          fault={faultOf(error, "username")}
        />
        {faultOf(error, "username") === undefined && <Failed error={error} />}
        <SubmitButton isBusy={isBusy}>Send the link</SubmitButton>
      </Form>
      <BackToSignIn />
    </>
  );
}

function Reset() {
  const [token] = useState(() => place.get().path[1] ?? "");
  const [password, setPassword] = useState("");
  const [repeated, setRepeated] = useState("");
  const isSame = repeated === "" || repeated === password;
  const { run, isBusy, error } = useAction(async () => {
    if (password !== repeated) return;
    await resetPassword(token, password);
    tell("The new password is set. Sign in with it.");
    go([]);
  });
  useEffect(() => {
    // The token is as good as a password for a while: out of the address, and of the browser's history.
    history.replaceState(null, "", href(["reset-password"]));
  }, []);
  if (token === "")
    return (
      <>
        <p>This link is incomplete. Open the one in the message again, or ask for a new one.</p>
        <p class="ways">
          <a href={href(["recover"])}>Ask for a new link</a>
        </p>
      </>
    );
  return (
    <Form onSubmit={() => void run()}>
      <TextField
        label="New password"
        hint="At least 8 characters."
        type="password"
        autocomplete="new-password"
        {...PASSWORD}
        value={password}
        onValue={setPassword}
        fault={faultOf(error, "new_password")}
      />
      <TextField
        label="The same again"
        type="password"
        autocomplete="new-password"
        {...PASSWORD}
        value={repeated}
        onValue={setRepeated}
        fault={isSame ? undefined : "The two differ."}
      />
      {faultOf(error, "new_password") === undefined && <Failed error={error} />}
      <SubmitButton isBusy={isBusy}>Set the password</SubmitButton>
    </Form>
  );
}

function BackToSignIn() {
  return (
    <p class="ways">
      <a href={href([])}>Sign in</a>
    </p>
  );
}
