import { useState } from "preact/hooks";
import type { Silence } from "../../../schemas/alerts/alert.ts";
import { endSilence, listSilences } from "../../api/alert-calls.ts";
import { may } from "../../app/session.ts";
import { Confirm } from "../../components/dialog.tsx";
import { notify } from "../../components/notices.tsx";
import { timeText } from "../../components/time.tsx";
import { useLoaded } from "../../lib/load.ts";
import { parseIdentifier } from "../administration/audit/audit-text.ts";
import { RecordButton, RecordRow, Records } from "../administration/records.tsx";
import { CreateSilence } from "./silence-dialog.tsx";

/** The silences that have not ended. */
export function SilencesTab() {
  const loaded = useLoaded(listSilences);
  const [isCreating, setIsCreating] = useState(false);
  const [ended, setEnded] = useState<Silence>();
  return (
    <>
      <Records
        noun={{ one: "silence", many: "silences" }}
        loaded={loaded}
        textOf={({ selector, reason, author }) => `${selector} ${reason} ${author}`}
        create={{ label: "Create silence", onClick: () => setIsCreating(true) }}
        empty="A silence holds back the notifications of alerts for a time, such as during maintenance."
      >
        {(silence) => <SilenceRow key={silence.id} silence={silence} onEnd={setEnded} />}
      </Records>
      {isCreating && <CreateSilence choices={[]} onDone={loaded.refresh} onClose={() => setIsCreating(false)} />}
      {ended !== undefined && (
        <Confirm
          title="End the silence?"
          label="End silence"
          onConfirm={async () => {
            await endSilence(ended.id);
            notify("The silence has ended.");
            loaded.refresh();
          }}
          onClose={() => setEnded(undefined)}
        >
          <p>Alerts that it held back and that still fire send their notifications now.</p>
        </Confirm>
      )}
    </>
  );
}

function SilenceRow({ silence, onEnd }: { silence: Silence; onEnd(silence: Silence): void }) {
  const { selector, reason, author, until } = silence;
  const name = selector === "" ? "all alerts" : selector;
  return (
    <RecordRow
      name={<code>{name}</code>}
      about={
        <>
          <div>Until {timeText(until)}</div>
          <div>
            {parseIdentifier(author).name}
            {reason !== "" && `: ${reason}`}
          </div>
        </>
      }
    >
      {may("commands:send") && <RecordButton label="End" of={name} onClick={() => onEnd(silence)} />}
    </RecordRow>
  );
}
