import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { ApiError, type FieldError } from "../api/call.ts";

/** Forms: a label for every field, what is wrong said where it is wrong. */

/** Of the browser's own, what our fields use. */
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
  /** What to know before filling it in. */
  hint?: ComponentChildren;
  /** What is wrong with it. */
  fault?: string | undefined;
}

export function TextField({
  label,
  hint,
  fault,
  value,
  onValue,
  type = "text",
  ...rest
}: FieldProps & InputProps & { value: string | number; onValue(value: string): void }) {
  const id = useId();
  return (
    <Field {...{ id, label, hint, fault }}>
      <input
        {...rest}
        // Each kind of input has props of its own to the compiler; those here are common to all of ours.
        type={type as "text"}
        {...described(id, hint, fault)}
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    </Field>
  );
}

export function SelectField<V extends string>({
  label,
  hint,
  fault,
  value,
  options,
  onValue,
}: FieldProps & { value: V; options: readonly (readonly [value: V, text: string])[]; onValue(value: V): void }) {
  const id = useId();
  return (
    <Field {...{ id, label, hint, fault }}>
      <select
        {...described(id, hint, fault)}
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
  fault,
  value,
  onValue,
  rows = 6,
  required = false,
}: FieldProps & { value: string; onValue(value: string): void; rows?: number; required?: boolean }) {
  const id = useId();
  return (
    <Field {...{ id, label, hint, fault }}>
      <textarea
        {...described(id, hint, fault)}
        rows={rows}
        required={required}
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    </Field>
  );
}

/** A label, a control with this id, and what there is to say about it. */
export function Field({ id, label, hint, fault, children }: FieldProps & { id: string; children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {fault !== undefined && (
        <p class="fault" id={`${id}-fault`}>
          {fault}
        </p>
      )}
    </div>
  );
}

/** What a control with a hint or a fault must carry so that it is read out with them. */
export function described(id: string, hint: ComponentChildren, fault: string | undefined) {
  const by = [hint !== undefined && `${id}-hint`, fault !== undefined && `${id}-fault`].filter(Boolean).join(" ");
  return { id, "aria-describedby": by || undefined, "aria-invalid": fault !== undefined };
}

/** A form that sends nothing by itself. */
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

/** What the service says of one field, by the last parts of where it is. */
export function faultOf(error: Error | undefined, ...field: (string | number)[]): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const isHere = ({ loc }: FieldError) => field.every((part, i) => loc[loc.length - field.length + i] === part);
  return error.faults.find(isHere)?.msg.replace(/^Value error, /, "");
}
