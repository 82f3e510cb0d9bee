import type { JobStatus } from "../../../schemas/job.ts";
import { Failed } from "../../components/states.tsx";
import { countOf, sizeText } from "../../lib/format.ts";
import { ownerText } from "./job-text.ts";
import { MAX_ROWS_LENGTH } from "./received-messages.ts";
import type { JobStream } from "./use-job-stream.ts";

/** Tells the reader about failures, missing messages and limits of this page. */
export function StreamNotes({ job, isOwn, stream }: { job: JobStatus; isOwn: boolean; stream: JobStream }) {
  const { view, socket, isReceivingAll, receiveAll } = stream;
  const { job_number, kind, owner } = job;
  const missing = view.gaps.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0);
  return (
    <>
      <Failed error={view.failure === undefined ? undefined : new Error(`The job failed: ${view.failure}`)} />
      {missing > 0 && (
        <p class="note warn" role="alert">
          {countOf(missing, "message is", "messages are")} missing. The service dropped them before a reader received
          them, because its buffer was full or they expired.
          {kind === "agent_data" && " Request the history again to get everything."}
        </p>
      )}
      {view.isFull && (
        <p class="note warn" role="alert">
          This page keeps at most {sizeText(MAX_ROWS_LENGTH)}. Download these rows, then receive the rest with{" "}
          <code>npm run stream -- --job {job_number}</code>.
        </p>
      )}
      {socket.state === "paused" && (
        <div class="note">
          <p>
            This preview shows only the first messages. If you receive the rest here, the service does not send these
            messages to other readers.
            {!isOwn && ` The job belongs to ${ownerText(owner)}, who may be waiting for them.`}
          </p>
          <button type="button" onClick={receiveAll}>
            Receive all messages here
          </button>
        </div>
      )}
      {isReceivingAll && view.rows > 0 && (
        <p class="hint">The service does not send these rows again. Download them before you leave this page.</p>
      )}
    </>
  );
}
