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
import { KINDS, kindText, ownerText, STATES, shortNumber } from "./names.ts";

const PAGE = 50;
/** As many as the service names at once. */
const MOST = 1_000;
const EVERY_MS = 5_000;

/** The jobs, newest first. What is chosen is in the address. */
export function JobList({ query }: { query: URLSearchParams }) {
  const kind = KINDS.find(([name]) => name === query.get("kind"))?.[0];
  const state = STATES.find(([name]) => name === query.get("state"))?.[0];
  const [limit, setLimit] = useState(PAGE);
  const jobs = usePoll((signal) => listJobs({ kind, state, limit }, signal), EVERY_MS, [kind, state]);
  // More is asked for at once, and what is there stays meanwhile.
  useEffect(() => {
    if (limit > PAGE) jobs.refresh();
  }, [limit]);
  const choose = (chosen: { kind?: string; state?: string }) => {
    setLimit(PAGE);
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
        <Shown jobs={jobs.data} isFiltered={kind !== undefined || state !== undefined} />
      )}
      {jobs.data !== undefined && jobs.data.length >= limit && limit < MOST && (
        <button type="button" onClick={() => setLimit(Math.min(MOST, limit + PAGE))}>
          Show more
        </button>
      )}
    </section>
  );
}

function Shown({ jobs, isFiltered }: { jobs: readonly JobRecord[]; isFiltered: boolean }) {
  const isAdministrator = session.value?.isAdministrator ?? false;
  if (jobs.length === 0) {
    return isFiltered ? (
      <Empty title="No such jobs">Choose another kind or state.</Empty>
    ) : (
      <Empty title="No jobs yet">Request an access point's history above, or start some in the emulator.</Empty>
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
