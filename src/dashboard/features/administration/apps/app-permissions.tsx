import type { AppPermission, Permissions } from "../../../../schemas/accounts/app.ts";
import { Checkbox, Choices } from "../../../components/choices.tsx";
import { TextArea } from "../../../components/form.tsx";

/** The permissions of an app, as the service stores them and as a form. */

export const PERMISSIONS: readonly { value: AppPermission; label: string; hint: string; isDefault: boolean }[] = [
  {
    value: "agents",
    label: "Access points",
    hint: "List access points and read their configuration.",
    isDefault: true,
  },
  { value: "data", label: "Data", hint: "Read reported data.", isDefault: true },
  { value: "commands", label: "Commands", hint: "Send commands to access points.", isDefault: true },
  { value: "emulator", label: "Emulator", hint: "Start emulated access points.", isDefault: true },
  { value: "callbacks", label: "Callbacks", hint: "Post results to any job.", isDefault: false },
  {
    value: "broker",
    label: "Broker",
    hint: "Publish and subscribe to all topics of the message broker.",
    isDefault: false,
  },
  { value: "write", label: "Write", hint: "Send metrics for access points from another system.", isDefault: false },
  {
    value: "register",
    label: "Register",
    hint: "Create the access points that it sends metrics for and that do not exist.",
    isDefault: false,
  },
];

export interface Draft {
  granted: AppPermission[];
  isLimited: boolean;
  /** Names of access points, separated by white space, commas or semicolons. */
  apIds: string;
}

/** Converts permissions to a form. A permission that is not stored has its default. */
export function draftOf(permissions: Permissions): Draft {
  return {
    granted: PERMISSIONS.filter(({ value, isDefault }) => permissions[value] ?? isDefault).map(({ value }) => value),
    isLimited: permissions.ap_ids !== undefined,
    apIds: permissions.ap_ids?.join("\n") ?? "",
  };
}

/** Converts a form to permissions. Keeps stored keys that this page does not know. */
export function permissionsOf(
  { granted, isLimited, apIds }: Draft,
  { ap_ids: _, ...before }: Permissions,
): Permissions {
  const chosen = Object.fromEntries(PERMISSIONS.map(({ value }) => [value, granted.includes(value)]));
  return { ...before, ...chosen, ...(isLimited && { ap_ids: namesIn(apIds) }) };
}

const namesIn = (text: string): string[] => [...new Set(text.split(/[\s,;]+/).filter(Boolean))];

export const isComplete = ({ isLimited, apIds }: Draft): boolean => !isLimited || namesIn(apIds).length > 0;

export function PermissionFields({
  draft,
  error,
  onDraft,
}: {
  draft: Draft;
  error: string | undefined;
  onDraft(draft: Draft): void;
}) {
  return (
    <>
      <Choices
        legend="Permissions"
        options={PERMISSIONS}
        chosen={draft.granted}
        onChosen={(granted) => onDraft({ ...draft, granted })}
      />
      <Checkbox
        label="Limit to certain access points"
        isChecked={draft.isLimited}
        onChecked={(isLimited) => onDraft({ ...draft, isLimited })}
      />
      {draft.isLimited && (
        <TextArea
          label="Access points"
          hint="One name per line."
          rows={4}
          required
          value={draft.apIds}
          onValue={(apIds) => onDraft({ ...draft, apIds })}
          error={draft.apIds === "" || isComplete(draft) ? error : "Enter at least one name."}
        />
      )}
    </>
  );
}
