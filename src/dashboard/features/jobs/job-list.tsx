import { useEffect, useState } from "preact/hooks";
import type { JobKind, JobRecord, JobState } from "../../../schemas/job.ts";
import { listJobs } from "../../api/operations.ts";
import { href, replaceRoute } from "../../app/router.ts";
import { session } from "../../app/session.ts";
import { JobStateMark } from "../../components/badges.tsx";
import { SelectField } from "../../components/form.tsx";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { Ago } from "../../components/time.tsx";
import { countText } from "../../lib/format.ts";
import { usePoll } from "../../lib/poll.ts";
import { KINDS, kindText, ownerText, STATES, shortNumber } from "./job-text.ts";

const PAGE_SIZE = 50;
/** The service lists at most this many jobs in one response. */
const MAX_JOBS = 1_000;
const POLL_INTERVAL_MS = 5_000;

/** Lists the jobs, newest first. The address contains the filters. */
export function JobList({ query }: { query: URLSearchParams }) {
  const kind = KINDS.find(([name]) => name === query.get("kind"))?.[0];
  const state = STATES.find(([name]) => name === query.get("state"))?.[0];
  const [limit, setLimit] = useState(PAGE_SIZE);
  const jobs = usePoll((signal) => listJobs({ kind, state, limit }, signal), POLL_INTERVAL_MS, [kind, state]);
  // Load a larger page at once. The current rows stay on the page until then.
  useEffect(() => {
    if (limit > PAGE_SIZE) jobs.refresh();
  }, [limit]);
  const choose = (chosen: { kind?: string; state?: string }) => {
    setLimit(PAGE_SIZE);
    replaceRoute(["jobs"], { ...Object.fromEntries(query), ...chosen });
  };
  return (
    <section class="card" aria-labelledby="job-list">
      <div class="spread">
        <h2 id="job-list">All jobs</h2>
        <div class="row job-filters">
          <SelectField<JobKind | "">
            label="Kind"
            value={kind ?? ""}
            options={[["", "Any kind"], ...KINDS]}
            onValue={(chosen) => choose({ kind: chosen })}
          />
          <SelectField<JobState | "">
            label="State"
            value={state ?? ""}
            options={[["", "Any state"], ...STATES]}
            onValue={(chosen) => choose({ state: chosen })}
          />
        </div>
      </div>
      <Failed error={jobs.error} onRetry={jobs.refresh} />
      {jobs.data === undefined ? (
        jobs.error === undefined && <Loading lines={8} />
      ) : (
        <JobTable jobs={jobs.data} isFiltered={kind !== undefined || state !== undefined} />
      )}
      {jobs.data !== undefined && jobs.data.length >= limit && limit < MAX_JOBS && (
        <button type="button" onClick={() => setLimit(Math.min(MAX_JOBS, limit + PAGE_SIZE))}>
          Show more
        </button>
      )}
    </section>
  );
}

function JobTable({ jobs, isFiltered }: { jobs: readonly JobRecord[]; isFiltered: boolean }) {
  const isAdministrator = session.value?.isAdministrator ?? false;
  if (jobs.length === 0) {
    return isFiltered ? (
      <Empty title="No jobs match these filters">Choose another kind or state.</Empty>
    ) : (
      <Empty title="No jobs yet">
        Request the history of an access point above, or <a href={href(["emulator"])}>start an emulation</a>.
      </Empty>
    );
  }
  return (
    <div class="table job-list">
      <table>
        <thead>
          <tr>
            <th scope="col">Job</th>
            <th scope="col">Kind</th>
            <th scope="col">State</th>
            {isAdministrator && <th scope="col">Owner</th>}
            <th scope="col">Created</th>
            <th scope="col" class="number">
              Messages
            </th>
            <th scope="col">Detail</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map(({ job_number, kind, state, owner, created_at, messages, detail }) => (
            <tr key={job_number}>
              <th scope="row">
                <a href={href(["jobs", job_number])} title={job_number}>
                  <code>{shortNumber(job_number)}</code>
                </a>
              </th>
              <td>{kindText(kind)}</td>
              <td>
                <JobStateMark state={state} />
              </td>
              {isAdministrator && <td>{ownerText(owner)}</td>}
              <td class="created">
                <Ago ts={created_at} />
              </td>
              <td class="number">{countText(messages)}</td>
              <td class="detail">{detail}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
