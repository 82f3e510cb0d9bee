import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** One thing that is so or not. */
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

/** Of several things, any. */
export function Choices<V extends string>({
  legend,
  options,
  chosen,
  fault,
  onChosen,
}: {
  legend: string;
  options: readonly { value: V; label: string; hint?: string }[];
  chosen: readonly V[];
  fault?: string | undefined;
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
          // In the order of the options, however they were ticked.
          onChecked={(isChecked) =>
            onChosen(
              options
                .map((option) => option.value)
                .filter((other) => (other === value ? isChecked : chosen.includes(other))),
            )
          }
        />
      ))}
      {fault !== undefined && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
    </fieldset>
  );
}
