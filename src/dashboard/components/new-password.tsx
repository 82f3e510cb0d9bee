import { TextField } from "./form.tsx";

/** The service's rules for passwords, checked by the browser. `autocomplete` makes password managers suggest a new one. */
export const NEW_PASSWORD = {
  type: "password",
  autocomplete: "new-password",
  required: true,
  minLength: 8,
  maxLength: 128,
} as const;

export const NEW_PASSWORD_HINT = "At least 8 characters.";

export interface PasswordInput {
  password: string;
  repeated: string;
}

export const EMPTY_PASSWORD: PasswordInput = { password: "", repeated: "" };

/** The fields for the user's own new password. It is typed twice because it is hidden. */
export function NewPasswordFields({
  input,
  onInput,
  error,
}: {
  input: PasswordInput;
  onInput(input: PasswordInput): void;
  error: string | undefined;
}) {
  const { password, repeated } = input;
  return (
    <>
      <TextField
        label="New password"
        hint={NEW_PASSWORD_HINT}
        {...NEW_PASSWORD}
        value={password}
        onValue={(value) => onInput({ ...input, password: value })}
        error={error}
      />
      <TextField
        label="Repeat the password"
        {...NEW_PASSWORD}
        value={repeated}
        onValue={(value) => onInput({ ...input, repeated: value })}
        error={repeated === "" || repeated === password ? undefined : "The passwords differ."}
      />
    </>
  );
}
