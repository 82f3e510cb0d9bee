import { TextField } from "./form.tsx";

/** What the service asks of a password, for the browser to know; and that it is a new one, for those that keep passwords. */
export const NEW_PASSWORD = {
  type: "password",
  autocomplete: "new-password",
  required: true,
  minLength: 8,
  maxLength: 128,
} as const;

export const NEW_PASSWORD_HINT = "At least 8 characters.";

export interface Typed {
  password: string;
  again: string;
}

export const NOT_TYPED: Typed = { password: "", again: "" };

/** One's own new password: twice, since it cannot be seen. */
export function NewPasswordFields({
  typed,
  onTyped,
  fault,
}: {
  typed: Typed;
  onTyped(typed: Typed): void;
  fault: string | undefined;
}) {
  const { password, again } = typed;
  return (
    <>
      <TextField
        label="New password"
        hint={NEW_PASSWORD_HINT}
        {...NEW_PASSWORD}
        value={password}
        onValue={(value) => onTyped({ ...typed, password: value })}
        fault={fault}
      />
      <TextField
        label="The same again"
        {...NEW_PASSWORD}
        value={again}
        onValue={(value) => onTyped({ ...typed, again: value })}
        fault={again === "" || again === password ? undefined : "The two differ."}
      />
    </>
  );
}
