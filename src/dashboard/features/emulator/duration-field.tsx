import { useId } from "preact/hooks";
import { controlProps, Field } from "../../components/form.tsx";
import { type Duration, maxAmount, PRESETS, UNITS, type Unit } from "../../lib/duration.ts";

/** A number with its unit, and buttons for common durations. */
export function DurationField({
  label,
  value,
  onValue,
  error,
}: {
  label: string;
  value: Duration;
  onValue(value: Duration): void;
  error: string | undefined;
}) {
  const id = useId();
  return (
    <Field {...{ id, label, error }}>
      <div class="duration">
        <input
          {...controlProps(id, undefined, error)}
          type="number"
          inputMode="numeric"
          required
          min={1}
          max={maxAmount(value.unit)}
          step={1}
          value={value.amount}
          onInput={({ currentTarget }) => onValue({ ...value, amount: currentTarget.value })}
        />
        <select
          aria-label={`${label}: unit`}
          value={value.unit}
          onChange={({ currentTarget }) => onValue({ ...value, unit: currentTarget.value as Unit })}
        >
          {UNITS.map(([unit, text]) => (
            <option key={unit} value={unit}>
              {text}
            </option>
          ))}
        </select>
        {PRESETS.map(([text, preset]) => (
          <button
            key={text}
            type="button"
            class="small"
            aria-pressed={preset.amount === value.amount && preset.unit === value.unit}
            onClick={() => onValue(preset)}
          >
            {text}
          </button>
        ))}
      </div>
    </Field>
  );
}
