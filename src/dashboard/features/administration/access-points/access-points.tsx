import { useState } from "preact/hooks";
import type { AccessPointState } from "../../../../schemas/overview.ts";
import { deleteAgent, overview, updateAgent } from "../../../api/operations.ts";
import { href } from "../../../app/router.ts";
import { ConditionMark, conditionOf, TechnologyBadge } from "../../../components/badges.tsx";
import { Confirm } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { useLoaded } from "../../../lib/load.ts";
import { RecordButton, RecordRow, Records } from "../records.tsx";
import { SetPassword } from "../set-password.tsx";
import { EditConfiguration } from "./edit-configuration.tsx";
import { RegisterAccessPoint } from "./register-access-point.tsx";

type Doing = "register" | { what: "configure" | "password" | "delete"; apId: string };

export function AccessPoints() {
  const loaded = useLoaded(async (signal) => (await overview(signal)).access_points);
  const [doing, setDoing] = useState<Doing>();
  return (
    <>
      <Records
        what={{ one: "access point", many: "access points" }}
        loaded={loaded}
        textOf={(point) => `${point.ap_id} ${point.access_point_type ?? ""} ${conditionOf(point)}`}
        create={{ label: "Register", onClick: () => setDoing("register") }}
        empty="Register one here, or let the emulator make some."
      >
        {(point) => <AccessPointRow key={point.ap_id} point={point} onDoing={setDoing} />}
      </Records>
      {doing && <Deed doing={doing} onDone={loaded.refresh} onClose={() => setDoing(undefined)} />}
    </>
  );
}

function AccessPointRow({ point, onDoing }: { point: AccessPointState; onDoing(doing: Doing): void }) {
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
      <RecordButton label="Configure" of={apId} onClick={() => onDoing({ what: "configure", apId })} />
      <RecordButton label="Password" of={apId} onClick={() => onDoing({ what: "password", apId })} />
      <RecordButton label="Delete" of={apId} isDangerous onClick={() => onDoing({ what: "delete", apId })} />
    </RecordRow>
  );
}

function Deed({ doing, onDone, onClose }: { doing: Doing; onDone(): void; onClose(): void }) {
  if (doing === "register") return <RegisterAccessPoint {...{ onDone, onClose }} />;
  const { apId } = doing;
  switch (doing.what) {
    case "configure":
      return <EditConfiguration {...{ apId, onDone, onClose }} />;
    case "password":
      return (
        <SetPassword
          name={apId}
          consequence="The access point is cut off until it logs in with the new one."
          send={async (password) => {
            await updateAgent(apId, { password });
            notify(`${apId} has a new password.`);
          }}
          onClose={onClose}
        />
      );
    case "delete":
      return (
        <Confirm
          title={`Delete ${apId}?`}
          label="Delete the access point"
          onConfirm={async () => {
            await deleteAgent(apId);
            notify(`${apId} is deleted.`);
            onDone();
          }}
          onClose={onClose}
        >
          <p>
            <strong>{apId}</strong> can no longer log in, and leaves the map and all lists.
          </p>
        </Confirm>
      );
  }
}
