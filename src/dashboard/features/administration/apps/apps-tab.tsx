import { useState } from "preact/hooks";
import type { Permissions } from "../../../../schemas/app.ts";
import { deleteApp, listApps } from "../../../api/operations.ts";
import { Confirm } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { useLoaded } from "../../../lib/load.ts";
import { ChangeGrants } from "../grants/grants-dialog.tsx";
import { RecordButton, RecordRow, Records } from "../records.tsx";
import { ChangePermissions, CreateApp } from "./app-dialogs.tsx";
import { ReplaceKey } from "./app-key.tsx";
import { draftOf, PERMISSIONS } from "./app-permissions.tsx";

interface App {
  appName: string;
  permissions: Permissions;
}

/** The dialog that is open, and the app that it changes. */
type OpenDialog = "create" | { action: "permissions" | "grants" | "key" | "delete"; app: App };

export function AppsTab() {
  const loaded = useLoaded(listWithoutKeys);
  const [dialog, setDialog] = useState<OpenDialog>();
  return (
    <>
      <Records
        noun={{ one: "app", many: "apps" }}
        loaded={loaded}
        textOf={({ appName }) => appName}
        create={{ label: "Create app", onClick: () => setDialog("create") }}
        empty="An app is a program that logs in with its own key. Create one to give a program access."
      >
        {(app) => <AppRow key={app.appName} app={app} onDialog={setDialog} />}
      </Records>
      {dialog && <AppDialog dialog={dialog} onDone={loaded.refresh} onClose={() => setDialog(undefined)} />}
    </>
  );
}

/** Lists the apps without their keys. The service sends the keys too, but an open page must not hold them. */
async function listWithoutKeys(signal: AbortSignal): Promise<App[]> {
  return (await listApps(signal)).map(({ app_name, permissions }) => ({ appName: app_name, permissions }));
}

function AppRow({ app, onDialog }: { app: App; onDialog(dialog: OpenDialog): void }) {
  const { appName, permissions } = app;
  return (
    <RecordRow name={appName} about={permissionsText(permissions)}>
      <RecordButton label="Change permissions" of={appName} onClick={() => onDialog({ action: "permissions", app })} />
      <RecordButton label="Change access" of={appName} onClick={() => onDialog({ action: "grants", app })} />
      <RecordButton label="Replace key" of={appName} onClick={() => onDialog({ action: "key", app })} />
      <RecordButton label="Delete" of={appName} isDangerous onClick={() => onDialog({ action: "delete", app })} />
    </RecordRow>
  );
}

function permissionsText(permissions: Permissions): string {
  const { granted } = draftOf(permissions);
  const names = PERMISSIONS.filter(({ value }) => granted.includes(value)).map(({ label }) => label);
  const count = permissions.ap_ids?.length;
  const limit = count === undefined ? "" : ` · only ${count === 1 ? "1 access point" : `${count} access points`}`;
  return (names.join(", ") || "No permissions") + limit;
}

function AppDialog({ dialog, onDone, onClose }: { dialog: OpenDialog; onDone(): void; onClose(): void }) {
  if (dialog === "create") return <CreateApp {...{ onDone, onClose }} />;
  const { appName, permissions } = dialog.app;
  switch (dialog.action) {
    case "permissions":
      return <ChangePermissions {...{ appName, permissions, onDone, onClose }} />;
    case "grants":
      return (
        <ChangeGrants
          holder={{ kind: "third_party_apps", name: appName }}
          note={permissions.ap_ids === undefined ? undefined : "The app's list of access points limits it in addition."}
          onClose={onClose}
        />
      );
    case "key":
      return <ReplaceKey {...{ appName, onClose }} />;
    case "delete":
      return (
        <Confirm
          title={`Delete ${appName}?`}
          label="Delete app"
          onConfirm={async () => {
            await deleteApp(appName);
            notify(`${appName} was deleted.`);
            onDone();
          }}
          onClose={onClose}
        >
          <p>
            The key of <strong>{appName}</strong> stops working at once. You cannot undo this.
          </p>
        </Confirm>
      );
  }
}
