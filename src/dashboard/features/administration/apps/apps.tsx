import { useState } from "preact/hooks";
import type { Permissions } from "../../../../schemas/app.ts";
import { deleteApp, listApps } from "../../../api/operations.ts";
import { Confirm } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { useLoaded } from "../../../lib/load.ts";
import { RecordButton, RecordRow, Records } from "../records.tsx";
import { ChangePermissions, CreateApp } from "./app-dialogs.tsx";
import { NewKey } from "./app-key.tsx";
import { draftOf, PERMISSIONS } from "./app-permissions.tsx";

interface App {
  appName: string;
  permissions: Permissions;
}

type Doing = "create" | { what: "permissions" | "key" | "delete"; app: App };

export function Apps() {
  const loaded = useLoaded(appsWithoutKeys);
  const [doing, setDoing] = useState<Doing>();
  return (
    <>
      <Records
        what={{ one: "app", many: "apps" }}
        loaded={loaded}
        textOf={({ appName }) => appName}
        create={{ label: "New app", onClick: () => setDoing("create") }}
        empty="An app is a program that logs in with a key of its own. Create one to give it access."
      >
        {(app) => <AppRow key={app.appName} app={app} onDoing={setDoing} />}
      </Records>
      {doing && <Deed doing={doing} onDone={loaded.refresh} onClose={() => setDoing(undefined)} />}
    </>
  );
}

/** The service tells administrators the keys as well; a page that lies open is no place for them. */
async function appsWithoutKeys(signal: AbortSignal): Promise<App[]> {
  return (await listApps(signal)).map(({ app_name, permissions }) => ({ appName: app_name, permissions }));
}

function AppRow({ app, onDoing }: { app: App; onDoing(doing: Doing): void }) {
  const { appName, permissions } = app;
  return (
    <RecordRow name={appName} about={permissionsText(permissions)}>
      <RecordButton label="Permissions" of={appName} onClick={() => onDoing({ what: "permissions", app })} />
      <RecordButton label="New key" of={appName} onClick={() => onDoing({ what: "key", app })} />
      <RecordButton label="Delete" of={appName} isDangerous onClick={() => onDoing({ what: "delete", app })} />
    </RecordRow>
  );
}

function permissionsText(permissions: Permissions): string {
  const { granted } = draftOf(permissions);
  const may = PERMISSIONS.filter(({ value }) => granted.includes(value)).map(({ label }) => label);
  const only = permissions.ap_ids?.length;
  const limit = only === undefined ? "" : ` · only ${only === 1 ? "1 access point" : `${only} access points`}`;
  return (may.join(", ") || "Nothing") + limit;
}

function Deed({ doing, onDone, onClose }: { doing: Doing; onDone(): void; onClose(): void }) {
  if (doing === "create") return <CreateApp {...{ onDone, onClose }} />;
  const { appName, permissions } = doing.app;
  switch (doing.what) {
    case "permissions":
      return <ChangePermissions {...{ appName, permissions, onDone, onClose }} />;
    case "key":
      return <NewKey {...{ appName, onClose }} />;
    case "delete":
      return (
        <Confirm
          title={`Delete ${appName}?`}
          label="Delete the app"
          onConfirm={async () => {
            await deleteApp(appName);
            notify(`${appName} is deleted.`);
            onDone();
          }}
          onClose={onClose}
        >
          <p>
            Whatever uses the key of <strong>{appName}</strong> is cut off at once.
          </p>
        </Confirm>
      );
  }
}
