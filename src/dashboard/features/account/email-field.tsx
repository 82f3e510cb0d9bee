import { TextField } from "../../components/form.tsx";

/** The pages for people who are not signed in share the e-mail address, so that it is typed once. */
export interface SignInPageProps {
  username: string;
  onUsername(username: string): void;
}

/** The field for the user's own e-mail address. `autocomplete` makes password managers fill it in. */
export function EmailField({
  username,
  onUsername,
  autofocus = false,
  error,
}: SignInPageProps & { autofocus?: boolean; error?: string | undefined }) {
  return (
    <TextField
      label="E-mail"
      type="email"
      autocomplete="username"
      required
      autofocus={autofocus}
      value={username}
      onValue={onUsername}
      error={error}
    />
  );
}
