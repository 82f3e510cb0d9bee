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
import { isUnderWay, kindText, ownerText, shortNumber } from "./names.ts";
import { StreamPanel } from "./stream-panel.tsx";

const EVERY_MS = 2_000;
/** Others may post to it long after the service is done with it. */
const SELDOM_MS = 30_000;

export function JobPage({ jobNumber, takesAll }: { jobNumber: string; takesAll: boolean }) {
  const job = usePoll(
    (signal) => readJob(jobNumber, signal),
    (status) => (status === undefined || isUnderWay(status.state) ? EVERY_MS : SELDOM_MS),
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
        <Failed error={new Error("There is no such job. The service forgets them a day after their last message.")} />
      ) : (
        <Failed error={job.error} onRetry={job.refresh} />
      )}
      {job.data === undefined ? (
        job.error === undefined && <Loading lines={8} />
      ) : (
        <>
          <Facts job={job.data} onChange={job.refresh} />
          {/* Only of a job that is there: to listen to a number that nobody has used would make one. */}
          <StreamPanel job={job.data} takesAll={takesAll} />
        </>
      )}
    </div>
  );
}

function Facts({ job, onChange }: { job: JobStatus; onChange(): void }) {
  const { job_number, kind, state, owner, created_at, updated_at, messages, detail } = job;
  const [isAsking, setIsAsking] = useState(false);
  const cancel = async () => {
    await cancelJob(job_number);
    notify("The job is stopped.");
    onChange();
  };
  return (
    <section class="card stack" aria-label="About the job">
      <div class="spread">
        <div class="row">
          <JobStateMark state={state} />
          <strong>{kindText(kind)}</strong>
          {detail !== "" && <span>{detail}</span>}
        </div>
        {isUnderWay(state) && (
          <button type="button" onClick={() => setIsAsking(true)}>
            Stop the job
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
      <HowFar job={job} />
      <Copyable label="the job's number" text={job_number} />
      {isAsking && (
        <Confirm title="Stop the job?" label="Stop the job" onConfirm={cancel} onClose={() => setIsAsking(false)}>
          {kind === "emulator" ? (
            <p>
              Its access points stay, offline, with their data. To remove them as well, stop it on the page{" "}
              <a href={href(["emulator"])}>Emulator</a>.
            </p>
          ) : (
            <p>It brings nothing more. What has come can still be read.</p>
          )}
        </Confirm>
      )}
    </section>
  );
}

/** Of what the service itself produces for the job. */
function HowFar({ job: { state, rows_sent, rows_estimated } }: { job: JobStatus }) {
  if (rows_estimated === null && rows_sent === 0) return null;
  const estimated = rows_estimated ?? 0;
  const isFollowing = state === "running" && rows_sent >= estimated;
  const share = state === "done" ? 1 : isFollowing ? undefined : rows_sent / Math.max(1, estimated);
  return (
    <div>
      <Progress label="How far the service has come" share={share} />
      <p class="hint">
        {isFollowing || state === "done"
          ? `${countOf(rows_sent, "row")} sent${isFollowing ? "; following what is reported" : ""}.`
          : `${countText(rows_sent)} of about ${countOf(estimated, "row")} sent.`}
      </p>
    </div>
  );
}
