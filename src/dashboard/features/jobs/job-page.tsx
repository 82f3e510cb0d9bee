import { useState } from "preact/hooks";
import type { JobStatus } from "../../../schemas/job.ts";
import { ApiError } from "../../api/call.ts";
import { cancelJob, readJob } from "../../api/operations.ts";
import { href } from "../../app/router.ts";
import { JobStateMark } from "../../components/badges.tsx";
import { Copyable } from "../../components/copy.tsx";
import { Confirm } from "../../components/dialog.tsx";
import { notify } from "../../components/notices.tsx";
import { Failed, Loading, Progress } from "../../components/states.tsx";
import { Ago } from "../../components/time.tsx";
import { countOf, countText } from "../../lib/format.ts";
import { usePoll } from "../../lib/poll.ts";
import { isActive, kindText, ownerText, shortNumber } from "./job-text.ts";
import { StreamPanel } from "./stream-panel.tsx";

const ACTIVE_INTERVAL_MS = 2_000;
/** Callback clients may post to a job after it has finished. */
const FINISHED_INTERVAL_MS = 30_000;

export function JobPage({ jobNumber, receivesAll }: { jobNumber: string; receivesAll: boolean }) {
  const job = usePoll(
    (signal) => readJob(jobNumber, signal),
    (status) => (status === undefined || isActive(status.state) ? ACTIVE_INTERVAL_MS : FINISHED_INTERVAL_MS),
    [jobNumber],
  );
  const isUnknown = job.error instanceof ApiError && job.error.status === 404;
  return (
    <div class="stack">
      <header>
        <p class="trail">
          <a href={href(["jobs"])}>Jobs</a>
        </p>
        <h1>Job {shortNumber(jobNumber)}</h1>
      </header>
      {isUnknown && job.data === undefined ? (
        <Failed
          error={
            new Error("There is no job with this number. The service deletes jobs a day after their last message.")
          }
        />
      ) : (
        <Failed error={job.error} onRetry={job.refresh} />
      )}
      {job.data === undefined ? (
        job.error === undefined && <Loading lines={8} />
      ) : (
        <>
          <JobDetails job={job.data} onChange={job.refresh} />
          {/* Only for an existing job: opening the stream of an unused number would create a job. */}
          <StreamPanel job={job.data} receivesAll={receivesAll} />
        </>
      )}
    </div>
  );
}

function JobDetails({ job, onChange }: { job: JobStatus; onChange(): void }) {
  const { job_number, kind, state, owner, created_at, updated_at, messages, detail } = job;
  const [isConfirming, setIsConfirming] = useState(false);
  const cancel = async () => {
    await cancelJob(job_number);
    notify("The job was stopped.");
    onChange();
  };
  return (
    <section class="card stack" aria-label="Job details">
      <div class="spread">
        <div class="row">
          <JobStateMark state={state} />
          <strong>{kindText(kind)}</strong>
          {detail !== "" && <span>{detail}</span>}
        </div>
        {isActive(state) && (
          <button type="button" onClick={() => setIsConfirming(true)}>
            Stop job
          </button>
        )}
      </div>
      <dl class="facts">
        <div>
          <dt>Owner</dt>
          <dd>{ownerText(owner)}</dd>
        </div>
        <div>
          <dt>Created</dt>
          <dd>
            <Ago ts={created_at} />
          </dd>
        </div>
        <div>
          <dt>Updated</dt>
          <dd>
            <Ago ts={updated_at} />
          </dd>
        </div>
        <div>
          <dt>Messages</dt>
          <dd>{countText(messages)}</dd>
        </div>
      </dl>
      <RowProgress job={job} />
      <Copyable label="job number" text={job_number} />
      {isConfirming && (
        <Confirm title="Stop this job?" label="Stop job" onConfirm={cancel} onClose={() => setIsConfirming(false)}>
          {kind === "emulator" ? (
            <p>
              Its access points go offline and keep their data. To remove them as well, stop the emulation on the{" "}
              <a href={href(["emulator"])}>Emulator</a> page.
            </p>
          ) : (
            <p>The job stops. Messages received so far stay available.</p>
          )}
        </Confirm>
      )}
    </section>
  );
}

/** Shows how many of the rows that the service produces for this job it has sent. */
function RowProgress({ job: { state, rows_sent, rows_estimated } }: { job: JobStatus }) {
  if (rows_estimated === null && rows_sent === 0) return null;
  const estimated = rows_estimated ?? 0;
  const isFollowing = state === "running" && rows_sent >= estimated;
  const share = state === "done" ? 1 : isFollowing ? undefined : rows_sent / Math.max(1, estimated);
  return (
    <div>
      <Progress label="Rows sent" share={share} />
      <p class="hint">
        {isFollowing || state === "done"
          ? `${countOf(rows_sent, "row")} sent.${isFollowing ? " New reports are added as they arrive." : ""}`
          : `${countText(rows_sent)} of about ${countOf(estimated, "row")} sent.`}
      </p>
    </div>
  );
}
