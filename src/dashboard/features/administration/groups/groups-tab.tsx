import { useState } from "preact/hooks";
import type { Group } from "../../../../schemas/groups.ts";
import { deleteGroup, listGroups, saveGroup } from "../../../api/fleet-calls.ts";
import { href } from "../../../app/router.ts";
import { Confirm, Dialog } from "../../../components/dialog.tsx";
import { Form, fieldErrorOf, SubmitButton, TextField } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { useLoaded } from "../../../lib/load.ts";
import { SelectorField } from "../../../selectors/selector-input.tsx";
import { problemIn } from "../../../selectors/selector-text.ts";
import { expireVocabulary } from "../../../selectors/vocabulary.ts";
import { RecordButton, RecordRow, Records } from "../records.tsx";

/** The dialog that is open, and the group that it changes. */
type OpenDialog = "create" | { action: "edit" | "delete"; group: Group };

/** Groups: selectors with a name. */
export function GroupsTab() {
  const loaded = useLoaded(listGroups);
  const [dialog, setDialog] = useState<OpenDialog>();
  const close = () => setDialog(undefined);
  const done = () => {
    expireVocabulary();
    loaded.refresh();
  };
  return (
    <>
      <Records
        noun={{ one: "group", many: "groups" }}
        loaded={loaded}
        textOf={({ name, selector, description }) => `${name} ${selector} ${description}`}
        create={{ label: "Create group", onClick: () => setDialog("create") }}
        empty="A group is a selector with a name. Use it as @name in filters and grants."
      >
        {(group) => <GroupRow key={group.name} group={group} onDialog={setDialog} />}
      </Records>
      {dialog === "create" && <EditGroup group={undefined} onDone={done} onClose={close} />}
      {typeof dialog === "object" && dialog.action === "edit" && (
        <EditGroup group={dialog.group} onDone={done} onClose={close} />
      )}
      {typeof dialog === "object" && dialog.action === "delete" && (
        <DeleteGroup name={dialog.group.name} onDone={done} onClose={close} />
      )}
    </>
  );
}

function GroupRow({ group, onDialog }: { group: Group; onDialog(dialog: OpenDialog): void }) {
  const { name, selector, description } = group;
  return (
    <RecordRow
      name={<a href={href([], { selector: `@${name}` })}>@{name}</a>}
      about={
        <>
          <code>{selector === "" ? "all access points" : selector}</code>
          {description !== "" && <div>{description}</div>}
        </>
      }
    >
      <RecordButton label="Edit" of={name} onClick={() => onDialog({ action: "edit", group })} />
      <RecordButton label="Delete" of={name} isDangerous onClick={() => onDialog({ action: "delete", group })} />
    </RecordRow>
  );
}

function EditGroup({ group, onDone, onClose }: { group: Group | undefined; onDone(): void; onClose(): void }) {
  const [name, setName] = useState(group?.name ?? "");
  const [selector, setSelector] = useState(group?.selector ?? "");
  const [description, setDescription] = useState(group?.description ?? "");
  const { run, isBusy, error } = useAction(async () => {
    await saveGroup({ name, selector: selector.trim(), description });
    notify(`The group ${name} was saved.`);
    onDone();
    onClose();
  });
  const fieldErrors = {
    name: fieldErrorOf(error, "name"),
    selector: fieldErrorOf(error, "selector"),
    description: fieldErrorOf(error, "description"),
  };
  return (
    <Dialog title={group === undefined ? "Create group" : `Group ${group.name}`} onClose={onClose}>
      <Form onSubmit={() => void (problemIn(selector) === undefined && run())}>
        {group === undefined && (
          <TextField
            label="Name"
            hint="Up to 63 letters, digits and . _ - characters. You cannot change it later."
            autocomplete="off"
            autofocus
            required
            maxLength={63}
            pattern="[A-Za-z0-9]([A-Za-z0-9._\-]*[A-Za-z0-9])?"
            value={name}
            onValue={setName}
            error={fieldErrors.name}
          />
        )}
        <SelectorField
          label="Access points (selector)"
          hint="A group cannot contain other groups. Empty: all access points."
          placeholder="site=uk/bristol/*"
          value={selector}
          onValue={setSelector}
          error={fieldErrors.selector}
        />
        <TextField
          label="Description (optional)"
          autocomplete="off"
          maxLength={500}
          value={description}
          onValue={setDescription}
          error={fieldErrors.description}
        />
        {group !== undefined && (
          <p class="hint">
            Filters that use this group change at once. Accounts whose grants use it have to sign in again.
          </p>
        )}
        {Object.values(fieldErrors).every((fieldError) => fieldError === undefined) && <Failed error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <SubmitButton isBusy={isBusy}>{group === undefined ? "Create group" : "Save group"}</SubmitButton>
        </footer>
      </Form>
    </Dialog>
  );
}

function DeleteGroup({ name, onDone, onClose }: { name: string; onDone(): void; onClose(): void }) {
  return (
    <Confirm
      title={`Delete the group ${name}?`}
      label="Delete group"
      onConfirm={async () => {
        await deleteGroup(name);
        notify(`The group ${name} was deleted.`);
        onDone();
      }}
      onClose={onClose}
    >
      <p>
        Filters with <strong>@{name}</strong> stop working. The access points stay unchanged. You cannot undo this.
      </p>
    </Confirm>
  );
}
