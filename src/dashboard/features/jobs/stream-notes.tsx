import type { JobStatus } from "../../../schemas/job.ts";
import { Failed } from "../../components/states.tsx";
import { countOf, sizeText } from "../../lib/format.ts";
import { ownerText } from "./names.ts";
import { MAX_ROWS_LENGTH } from "./received.ts";
import type { JobStream } from "./stream.ts";

/** What a reader has to know of what has come, and of what has not. */
export function StreamNotes({ job, isOwn, stream }: { job: JobStatus; isOwn: boolean; stream: JobStream }) {
  const { view, socket, isTaking, take } = stream;
  const { job_number, owner } = job;
  const missing = view.gaps.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0);
  return (
    <>
      <Failed error={view.failure === undefined ? undefined : new Error(`The job has failed: ${view.failure}`)} />
      {missing > 0 && (
        <p class="note warn" role="alert">
          {countOf(missing, "message is", "messages are")} missing here: the service had no room for more, or they were
          too old, before anybody took them.
        </p>
      )}
      {view.isFull && (
        <p class="note warn" role="alert">
          {sizeText(MAX_ROWS_LENGTH)} is as much as this page keeps. Save it, then fetch the rest with{" "}
          <code>npm run stream -- --job {job_number}</code>.
        </p>
      )}
      {socket.state === "paused" && (
        <div class="note">
          <p>
            There may be more. So far nothing was taken away from other readers of this job; the rest comes only to
            somebody who takes it, and is then not sent again.
            {!isOwn && ` This job is not yours: ${ownerText(owner)} may be waiting for it.`}
          </p>
          <button type="button" onClick={take}>
            Receive all of it here
          </button>
        </div>
      )}
      {isTaking && view.rows > 0 && (
        <p class="hint">What has been received here is not sent again; save it before you leave.</p>
      )}
    </>
  );
}
