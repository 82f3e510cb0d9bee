import { href, type PageProps } from "../../app/router.ts";
import { JobList } from "./job-list.tsx";
import { JobPage } from "./job-page.tsx";
import { RequestHistory } from "./request-history.tsx";
import "../../style/jobs.css";

export function Jobs({ route: { path, query } }: PageProps) {
  const jobNumber = path[1];
  if (jobNumber !== undefined) {
    return <JobPage key={jobNumber} jobNumber={jobNumber} receivesAll={query.get("receive") === "all"} />;
  }
  return (
    <div class="stack">
      <header>
        <h1>Jobs</h1>
        <p class="soft">
          Long-running requests run as jobs: history, commands and{" "}
          <a href={href(["emulator"])}>emulated access points</a>.
        </p>
      </header>
      <RequestHistory agent={query.get("agent") ?? ""} />
      <JobList query={query} />
    </div>
  );
}
