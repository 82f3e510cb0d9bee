import { SelectField, TextField } from "../../components/form.tsx";
import { type Group, type GroupFaults, LIMITS, TECHNOLOGIES } from "./draft.ts";
import { DurationField } from "./duration-field.tsx";
import { PlacePicker } from "./place-picker.tsx";

/** Access points of one kind. */
export function GroupFields({
  group,
  number,
  faults,
  hasOwnDuration,
  onGroup,
  onRemove,
}: {
  group: Group;
  /** Of several groups. */
  number: number | undefined;
  faults: GroupFaults;
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
          error={faults.accessPoints}
        />
        <TextField
          label="Devices at each"
          type="number"
          required
          min={1}
          max={LIMITS.devices}
          step={1}
          value={group.devices}
          onValue={(devices) => change({ devices })}
          error={faults.devices}
        />
      </div>
      <PlacePicker
        places={group.places}
        onPlaces={(places) => change({ places })}
        error={faults.places}
        faults={faults.placesFaults}
      />
      {hasOwnDuration && (
        <DurationField
          label="Duration"
          value={group.duration}
          onValue={(duration) => change({ duration })}
          error={faults.duration}
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
