import { useState } from "preact/hooks";
import type { EnrolmentToken } from "../../../../schemas/enrolment-token.ts";
import { serviceNowMs } from "../../../api/clock.ts";
import { listEnrolmentTokens, revokeEnrolmentToken } from "../../../api/fleet-calls.ts";
import { Confirm } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { timeText } from "../../../components/time.tsx";
import { useLoaded } from "../../../lib/load.ts";
import { LabelChips } from "../../../selectors/label-fields.tsx";
import { parseIdentifier } from "../audit/audit-text.ts";
import { RecordButton, RecordRow, Records } from "../records.tsx";
import { CreateToken } from "./create-token.tsx";

type OpenDialog = "create" | { revoked: EnrolmentToken };

/** Enrolment tokens: access points register themselves with one. */
export function EnrolmentTab() {
  const loaded = useLoaded(listEnrolmentTokens);
  const [dialog, setDialog] = useState<OpenDialog>();
  const close = () => setDialog(undefined);
  return (
    <>
      <Records
        noun={{ one: "enrolment token", many: "enrolment tokens" }}
        loaded={loaded}
        textOf={({ prefix, description, created_by }) => `${prefix} ${description} ${created_by}`}
        create={{ label: "Create token", onClick: () => setDialog("create") }}
        empty="Access points register themselves with an enrolment token, and get its labels."
      >
        {(token) => <TokenRow key={token.id} token={token} onRevoke={() => setDialog({ revoked: token })} />}
      </Records>
      {dialog === "create" && <CreateToken onDone={loaded.refresh} onClose={close} />}
      {typeof dialog === "object" && (
        <Confirm
          title={`Revoke ${nameOf(dialog.revoked)}?`}
          label="Revoke token"
          onConfirm={async () => {
            await revokeEnrolmentToken(dialog.revoked.id);
            notify(`${nameOf(dialog.revoked)} was revoked.`);
            loaded.refresh();
          }}
          onClose={close}
        >
          <p>
            No access point can register with this token any more. Those that have registered keep their access. You
            cannot undo this.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** The token in the settings of the service cannot be revoked. */
const isFromSettings = ({ id }: EnrolmentToken): boolean => id === "settings";

const nameOf = ({ prefix, description }: EnrolmentToken): string => description || `${prefix}…`;

function TokenRow({ token, onRevoke }: { token: EnrolmentToken; onRevoke(): void }) {
  const { prefix, description, labels, created_by } = token;
  const state = stateOf(token, serviceNowMs());
  return (
    <RecordRow
      name={
        <>
          <code>{prefix}…</code> {description}
        </>
      }
      about={
        <>
          <div>
            {state} · {usesText(token)} ·{" "}
            {isFromSettings(token) ? "set by the operator" : `created by ${parseIdentifier(created_by).name}`}
          </div>
          <LabelChips labels={labels} />
        </>
      }
    >
      {token.revoked_at === null && !isFromSettings(token) && (
        <RecordButton label="Revoke" of={nameOf(token)} isDangerous onClick={onRevoke} />
      )}
    </RecordRow>
  );
}

function usesText({ uses, max_uses }: EnrolmentToken): string {
  if (max_uses === null) return uses === 1 ? "used once" : `used ${uses.toLocaleString("en")} times`;
  return `${uses.toLocaleString("en")} of ${max_uses.toLocaleString("en")} uses`;
}

function stateOf({ uses, max_uses, expires_at, revoked_at }: EnrolmentToken, nowMs: number): string {
  if (revoked_at !== null) return `Revoked on ${timeText(revoked_at)}`;
  if (expires_at !== null && Date.parse(expires_at) <= nowMs) return `Expired on ${timeText(expires_at)}`;
  if (max_uses !== null && uses >= max_uses) return "Used up";
  return expires_at === null ? "Does not expire" : `Expires on ${timeText(expires_at)}`;
}
