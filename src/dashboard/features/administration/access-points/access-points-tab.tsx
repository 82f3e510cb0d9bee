import { useState } from "preact/hooks";
import type { AccessPointState } from "../../../../schemas/overview.ts";
import { readGrants } from "../../../api/fleet-calls.ts";
import { deleteAgent, overview, updateAgent } from "../../../api/operations.ts";
import { href } from "../../../app/router.ts";
import { session } from "../../../app/session.ts";
import { ConditionMark, conditionOf, TechnologyBadge } from "../../../components/badges.tsx";
import { Confirm } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { useLoaded } from "../../../lib/load.ts";
import { RecordButton, RecordRow, Records } from "../records.tsx";
import { SetPassword } from "../secrets.tsx";
import { EditConfiguration } from "./edit-configuration.tsx";
import { RegisterAccessPoint } from "./register-access-point.tsx";

/** The dialog that is open, and the access point that it changes. */
type OpenDialog = "register" | { action: "configure" | "password" | "delete"; apId: string };

export function AccessPointsTab() {
  const loaded = useLoaded(managedAccessPoints);
  const [dialog, setDialog] = useState<OpenDialog>();
  return (
    <>
      <Records
        noun={{ one: "access point", many: "access points" }}
        loaded={loaded}
        textOf={(point) => `${point.ap_id} ${point.access_point_type ?? ""} ${conditionOf(point)}`}
        create={{ label: "Register access point", onClick: () => setDialog("register") }}
        empty="Register an access point here, or start an emulation."
      >
        {(point) => <AccessPointRow key={point.ap_id} point={point} onDialog={setDialog} />}
      </Records>
      {dialog && <AccessPointDialog dialog={dialog} onDone={loaded.refresh} onClose={() => setDialog(undefined)} />}
    </>
  );
}

/** Returns the access points that the user may manage: administrators all of them, others those of their grants. */
async function managedAccessPoints(signal: AbortSignal): Promise<AccessPointState[]> {
  const { username = "", isAdministrator = false } = session.value ?? {};
  const grants = isAdministrator ? null : await readGrants({ kind: "users", name: username }, signal);
  const selectors = grants?.filter(({ role }) => role === "manager").map(({ selector }) => selector) ?? [""];
  const lists = await Promise.all(selectors.map(async (selector) => (await overview(selector, signal)).access_points));
  const byName = new Map(lists.flat().map((point) => [point.ap_id, point]));
  return lists.length === 1 ? [...byName.values()] : [...byName.values()].sort((a, b) => (a.ap_id < b.ap_id ? -1 : 1));
}

function AccessPointRow({ point, onDialog }: { point: AccessPointState; onDialog(dialog: OpenDialog): void }) {
  const { ap_id: apId, access_point_type } = point;
  return (
    <RecordRow
      name={<a href={href(["access-points", apId])}>{apId}</a>}
      about={
        <span class="row">
          <TechnologyBadge type={access_point_type} />
          <ConditionMark condition={conditionOf(point)} />
        </span>
      }
    >
      <RecordButton label="Configure" of={apId} onClick={() => onDialog({ action: "configure", apId })} />
      <RecordButton label="Set password" of={apId} onClick={() => onDialog({ action: "password", apId })} />
      <RecordButton label="Delete" of={apId} isDangerous onClick={() => onDialog({ action: "delete", apId })} />
    </RecordRow>
  );
}

function AccessPointDialog({ dialog, onDone, onClose }: { dialog: OpenDialog; onDone(): void; onClose(): void }) {
  if (dialog === "register") return <RegisterAccessPoint {...{ onDone, onClose }} />;
  const { apId } = dialog;
  switch (dialog.action) {
    case "configure":
      return <EditConfiguration {...{ apId, onDone, onClose }} />;
    case "password":
      return (
        <SetPassword
          name={apId}
          consequence="The access point loses access until it logs in with the new password."
          send={async (password) => {
            await updateAgent(apId, { password });
            notify(`The password of ${apId} was changed.`);
          }}
          onClose={onClose}
        />
      );
    case "delete":
      return (
        <Confirm
          title={`Delete ${apId}?`}
          label="Delete access point"
          onConfirm={async () => {
            await deleteAgent(apId);
            notify(`${apId} was deleted.`);
            onDone();
          }}
          onClose={onClose}
        >
          <p>
            <strong>{apId}</strong> can no longer log in and disappears from the map and all lists. You cannot undo
            this.
          </p>
        </Confirm>
      );
  }
}
