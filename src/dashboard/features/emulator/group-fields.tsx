import { SelectField, TextField } from "../../components/form.tsx";
import { type Group, type GroupErrors, LIMITS, TECHNOLOGIES } from "./draft.ts";
import { DurationField } from "./duration-field.tsx";
import { PlacePicker } from "./place-picker.tsx";

/** The fields for access points of one technology. */
export function GroupFields({
  group,
  number,
  errors,
  hasOwnDuration,
  onGroup,
  onRemove,
}: {
  group: Group;
  /** Undefined if there is only one group. */
  number: number | undefined;
  errors: GroupErrors;
  hasOwnDuration: boolean;
  onGroup(group: Group): void;
  onRemove(): void;
}) {
  const change = (changed: Partial<Group>) => onGroup({ ...group, ...changed });
  return (
    <fieldset class="group">
      <legend class={number === undefined ? "hidden-text" : undefined}>Group {number ?? 1}</legend>
      <div class="group-numbers">
        <SelectField
          label="Technology"
          value={group.technology}
          options={TECHNOLOGIES}
          onValue={(technology) => change({ technology })}
        />
        <TextField
          label="Access points"
          type="number"
          required
          min={1}
          max={LIMITS.accessPoints}
          step={1}
          value={group.accessPoints}
          onValue={(accessPoints) => change({ accessPoints })}
          error={errors.accessPoints}
        />
        <TextField
          label="Devices each"
          type="number"
          required
          min={1}
          max={LIMITS.devices}
          step={1}
          value={group.devices}
          onValue={(devices) => change({ devices })}
          error={errors.devices}
        />
      </div>
      <PlacePicker
        places={group.places}
        onPlaces={(places) => change({ places })}
        error={errors.places}
        placeErrors={errors.byPlace}
      />
      {hasOwnDuration && (
        <DurationField
          label="Duration"
          value={group.duration}
          onValue={(duration) => change({ duration })}
          error={errors.duration}
        />
      )}
      {number !== undefined && (
        <button type="button" class="small remove" onClick={onRemove}>
          Remove group {number}
        </button>
      )}
    </fieldset>
  );
}
