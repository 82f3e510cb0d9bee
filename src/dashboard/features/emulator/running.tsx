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
import { ownerText, shortNumber } from "../jobs/names.ts";
import { lastSpinUp } from "./last-spin-up.ts";

const SHOWN = 50;

/** The emulator's jobs that run or are about to. */
export function Running({ jobs: { data, error, refresh } }: { jobs: Polled<JobRecord[]> }) {
  const [leaving, setLeaving] = useState<JobRecord>();
  const remove = async (job: JobRecord) => {
    const { detail } = await removeEmulator(job.job_number);
    notify(`Stopped: ${detail.replace("agents", "access points")}.`);
    if (lastSpinUp.value?.job_number === job.job_number) lastSpinUp.value = undefined;
    refresh();
  };
  return (
    <section class="card" aria-labelledby="running">
      <h2 id="running">Running</h2>
      <Failed error={error} onRetry={refresh} />
      {data === undefined ? (
        error === undefined && <Loading lines={4} />
      ) : data.length === 0 ? (
        <Empty title="Nothing runs">Start some access points: they report every second and obey commands.</Empty>
      ) : (
        <ul class="running">
          {data.slice(0, SHOWN).map((job) => (
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
                onClick={() => setLeaving(job)}
              >
                Stop and remove
              </button>
            </li>
          ))}
        </ul>
      )}
      {data !== undefined && data.length > SHOWN && (
        <p>
          <a href={href(["jobs"], { kind: "emulator", state: "running" })}>and {countText(data.length - SHOWN)} more</a>
        </p>
      )}
      {leaving !== undefined && (
        <Confirm
          title="Stop and remove?"
          label="Stop and remove"
          onConfirm={() => remove(leaving)}
          onClose={() => setLeaving(undefined)}
        >
          <p>
            This stops the access points of job {shortNumber(leaving.job_number)} ({leaving.detail}) and removes them.
            It cannot be undone.
          </p>
        </Confirm>
      )}
    </section>
  );
}
