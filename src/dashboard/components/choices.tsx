import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** A checkbox with a label and an optional hint. */
export function Checkbox({
  label,
  hint,
  isChecked,
  onChecked,
}: {
  label: string;
  hint?: ComponentChildren;
  isChecked: boolean;
  onChecked(isChecked: boolean): void;
}) {
  const id = useId();
  return (
    <div class="choice">
      <input
        type="checkbox"
        id={id}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        checked={isChecked}
        onChange={({ currentTarget }) => onChecked(currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** A group of checkboxes: any number of the options can be chosen. */
export function Choices<V extends string>({
  legend,
  options,
  chosen,
  error,
  onChosen,
}: {
  legend: string;
  options: readonly { value: V; label: string; hint?: string }[];
  chosen: readonly V[];
  error?: string | undefined;
  onChosen(chosen: V[]): void;
}) {
  return (
    <fieldset class="choices">
      <legend>{legend}</legend>
      {options.map(({ value, label, hint }) => (
        <Checkbox
          key={value}
          {...{ label, hint }}
          isChecked={chosen.includes(value)}
          // Keeps the order of the options, not of the clicks.
          onChecked={(isChecked) =>
            onChosen(
              options
                .map((option) => option.value)
                .filter((other) => (other === value ? isChecked : chosen.includes(other))),
            )
          }
        />
      ))}
      {error !== undefined && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}
