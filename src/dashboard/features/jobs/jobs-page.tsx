import { href, type PageProps } from "../../app/router.ts";
import { JobPage } from "./job-page.tsx";
import { JobList } from "./list.tsx";
import { RequestHistory } from "./request-history.tsx";
import "../../style/jobs.css";

export function Jobs({ route: { path, query } }: PageProps) {
  const jobNumber = path[1];
  if (jobNumber !== undefined) {
    return <JobPage key={jobNumber} jobNumber={jobNumber} takesAll={query.get("receive") === "all"} />;
  }
  return (
    <div class="stack">
      <header>
        <h1>Jobs</h1>
        <p class="soft">
          What takes a while is answered by a job: history, commands, and <a href={href(["emulator"])}>emulated</a>{" "}
          access points.
        </p>
      </header>
      <RequestHistory agent={query.get("agent") ?? ""} />
      <JobList query={query} />
    </div>
  );
}
