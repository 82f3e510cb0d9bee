import { type Duration, UNITS, type Unit } from "../lib/duration.ts";

/** A number with its unit, in one row. The caller gives it a label. */
export function DurationInput({
  id,
  label,
  value,
  onValue,
  min = 0,
  describedBy,
}: {
  id?: string;
  /** The name for screen readers. */
  label: string;
  value: Duration;
  onValue(value: Duration): void;
  min?: number;
  describedBy?: string | undefined;
}) {
  return (
    <span class="duration-input">
      <input
        id={id}
        type="number"
        inputMode="numeric"
        aria-label={label}
        aria-describedby={describedBy}
        required
        min={min}
        step="any"
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
    </span>
  );
}
