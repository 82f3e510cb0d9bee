import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { ApiError, type FieldError } from "../api/call.ts";

/** Form controls. Each has a label, and shows its error next to the control. */

/** The attributes of `<input>` that the page uses. */
interface InputProps {
  type?: "text" | "email" | "password" | "number" | "search" | "datetime-local";
  autocomplete?: string;
  autofocus?: boolean;
  required?: boolean;
  readOnly?: boolean;
  placeholder?: string;
  minLength?: number;
  maxLength?: number;
  min?: number | string;
  max?: number | string;
  step?: number | "any";
  pattern?: string;
  list?: string;
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
}

export function TextField({
  label,
  hint,
  error,
  value,
  onValue,
  type = "text",
  ...rest
}: FieldProps & InputProps & { value: string | number; onValue(value: string): void }) {
  const id = useId();
  return (
    <Field {...{ id, label, hint, error }}>
      <input
        {...rest}
        // Preact types the props of every input type separately. `InputProps` fit all the types in use.
        type={type as "text"}
        {...controlProps(id, hint, error)}
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    </Field>
  );
}

export function SelectField<V extends string>({
  label,
  hint,
  error,
  value,
  options,
  onValue,
}: FieldProps & { value: V; options: readonly (readonly [value: V, text: string])[]; onValue(value: V): void }) {
  const id = useId();
  return (
    <Field {...{ id, label, hint, error }}>
      <select
        {...controlProps(id, hint, error)}
        value={value}
        onChange={({ currentTarget }) => onValue(currentTarget.value as V)}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

export function TextArea({
  label,
  hint,
  error,
  value,
  onValue,
  rows = 6,
  required = false,
}: FieldProps & { value: string; onValue(value: string): void; rows?: number; required?: boolean }) {
  const id = useId();
  return (
    <Field {...{ id, label, hint, error }}>
      <textarea
        {...controlProps(id, hint, error)}
        rows={rows}
        required={required}
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    </Field>
  );
}

/** A label, a control with this id, its hint and its error. */
export function Field({ id, label, hint, error, children }: FieldProps & { id: string; children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

/** Returns the attributes with which screen readers announce a control's hint and error. */
export function controlProps(id: string, hint: ComponentChildren, error: string | undefined) {
  const by = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`].filter(Boolean).join(" ");
  return { id, "aria-describedby": by || undefined, "aria-invalid": error !== undefined };
}

/** A form that calls `onSubmit` instead of the browser's own submission. */
export function Form({ onSubmit, children }: { onSubmit(): void; children: ComponentChildren }) {
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
}

export function SubmitButton({ isBusy, children }: { isBusy: boolean; children: ComponentChildren }) {
  return (
    <button type="submit" class="primary" disabled={isBusy} aria-busy={isBusy}>
      {children}
    </button>
  );
}

/** Returns the service's message about one field, found by the last segments of its path. */
export function fieldErrorOf(error: Error | undefined, ...field: (string | number)[]): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const isField = ({ loc }: FieldError) => field.every((segment, i) => loc[loc.length - field.length + i] === segment);
  return error.fieldErrors.find(isField)?.msg.replace(/^Value error, /, "");
}
