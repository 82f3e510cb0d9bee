import { useState } from "preact/hooks";
import type { JobRecord } from "../../../schemas/job.ts";
import { removeEmulator } from "../../api/operations.ts";
import { href } from "../../app/router.ts";
import { JobStateMark } from "../../components/badges.tsx";
import { Confirm } from "../../components/dialog.tsx";
import { notify } from "../../components/notices.tsx";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { Ago } from "../../components/time.tsx";
import { countText } from "../../lib/format.ts";
import type { Polled } from "../../lib/poll.ts";
import { ownerText, shortNumber } from "../jobs/job-text.ts";
import { lastSpinUp } from "./spin-up-result.tsx";

const MAX_SHOWN = 50;

/** Lists the emulator jobs that are queued or running. */
export function RunningEmulations({ jobs: { data, error, refresh } }: { jobs: Polled<JobRecord[]> }) {
  const [confirming, setConfirming] = useState<JobRecord>();
  const remove = async (job: JobRecord) => {
    const { detail } = await removeEmulator(job.job_number);
    notify(`Stopped: ${detail.replace("agents", "access points")}.`);
    if (lastSpinUp.value?.job_number === job.job_number) lastSpinUp.value = undefined;
    refresh();
  };
  return (
    <section class="card" aria-labelledby="running">
      <h2 id="running">Running emulations</h2>
      <Failed error={error} onRetry={refresh} />
      {data === undefined ? (
        error === undefined && <Loading lines={4} />
      ) : data.length === 0 ? (
        <Empty title="No emulations running">Start one with the form on this page.</Empty>
      ) : (
        <ul class="running">
          {data.slice(0, MAX_SHOWN).map((job) => (
            <li key={job.job_number}>
              <div>
                <p class="row">
                  <a href={href(["jobs", job.job_number])} title={job.job_number}>
                    <code>{shortNumber(job.job_number)}</code>
                  </a>
                  <JobStateMark state={job.state} />
                  <strong>{job.detail}</strong>
                </p>
                <p class="soft">
                  Started <Ago ts={job.created_at} /> by {ownerText(job.owner)}
                </p>
              </div>
              <button
                type="button"
                class="small"
                aria-label={`Stop and remove ${shortNumber(job.job_number)}`}
                onClick={() => setConfirming(job)}
              >
                Stop and remove
              </button>
            </li>
          ))}
        </ul>
      )}
      {data !== undefined && data.length > MAX_SHOWN && (
        <p>
          <a href={href(["jobs"], { kind: "emulator", state: "running" })}>
            Show {countText(data.length - MAX_SHOWN)} more
          </a>
        </p>
      )}
      {confirming !== undefined && (
        <Confirm
          title={`Stop and remove ${shortNumber(confirming.job_number)}?`}
          label="Stop and remove"
          onConfirm={() => remove(confirming)}
          onClose={() => setConfirming(undefined)}
        >
          <p>This stops the emulation ({confirming.detail}) and removes its access points. You cannot undo this.</p>
        </Confirm>
      )}
    </section>
  );
}
