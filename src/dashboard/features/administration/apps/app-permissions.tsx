import type { AppPermission, Permissions } from "../../../../schemas/app.ts";
import { Checkbox, Choices } from "../../../components/choices.tsx";
import { TextArea } from "../../../components/form.tsx";

/** What an app may do: as the service keeps it, and as a person fills it in. */

export const PERMISSIONS: readonly { value: AppPermission; label: string; hint: string; isDefault: boolean }[] = [
  { value: "agents", label: "Access points", hint: "List them and read their configuration.", isDefault: true },
  { value: "data", label: "Data", hint: "Read what they report.", isDefault: true },
  { value: "commands", label: "Commands", hint: "Send commands to them.", isDefault: true },
  { value: "emulator", label: "Emulator", hint: "Run emulated access points.", isDefault: true },
  { value: "callbacks", label: "Callbacks", hint: "Post results to anybody's job.", isDefault: false },
  { value: "broker", label: "Broker", hint: "Use all topics of the message broker.", isDefault: false },
];

export interface Draft {
  granted: AppPermission[];
  isLimited: boolean;
  /** The only access points, separated by blanks, commas or lines. */
  apIds: string;
}

/** What is not said of a permission is its default. */
export function draftOf(permissions: Permissions): Draft {
  return {
    granted: PERMISSIONS.filter(({ value, isDefault }) => permissions[value] ?? isDefault).map(({ value }) => value),
    isLimited: permissions.ap_ids !== undefined,
    apIds: permissions.ap_ids?.join("\n") ?? "",
  };
}

/** Keys that are not known here stay as they were. */
export function permissionsOf(
  { granted, isLimited, apIds }: Draft,
  { ap_ids: _, ...before }: Permissions,
): Permissions {
  const said = Object.fromEntries(PERMISSIONS.map(({ value }) => [value, granted.includes(value)]));
  return { ...before, ...said, ...(isLimited && { ap_ids: namesIn(apIds) }) };
}

const namesIn = (text: string): string[] => [...new Set(text.split(/[\s,;]+/).filter(Boolean))];

export const isComplete = ({ isLimited, apIds }: Draft): boolean => !isLimited || namesIn(apIds).length > 0;

export function PermissionFields({
  draft,
  error: fault,
  onDraft,
}: {
  draft: Draft;
  error: string | undefined;
  onDraft(draft: Draft): void;
}) {
  return (
    <>
      <Choices
        legend="It may use"
        options={PERMISSIONS}
        chosen={draft.granted}
        onChosen={(granted) => onDraft({ ...draft, granted })}
      />
      <Checkbox
        label="Only certain access points"
        isChecked={draft.isLimited}
        onChecked={(isLimited) => onDraft({ ...draft, isLimited })}
      />
      {draft.isLimited && (
        <TextArea
          label="Which access points"
          hint="Their names, each on a line of its own."
          rows={4}
          required
          value={draft.apIds}
          onValue={(apIds) => onDraft({ ...draft, apIds })}
          error={draft.apIds === "" || isComplete(draft) ? fault : "Name at least one."}
        />
      )}
    </>
  );
}
