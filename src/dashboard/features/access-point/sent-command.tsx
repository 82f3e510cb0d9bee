import { useEffect } from "preact/hooks";
import { href } from "../../app/router.ts";
import { JobStateMark } from "../../components/badges.tsx";
import { Ago } from "../../components/time.tsx";
import { useJob } from "../../lib/job-status.ts";
import { NO_RESULT, type Outcome, outcomeOf } from "./command-outcome.ts";

export interface SentCommand {
  command: string;
  jobNumber: string;
  sentAt: string;
  outcome?: Outcome;
}

/** Shows a command that was sent. Listens to its job until there is a result. */
export function SentCommandLine({ sent, onOutcome }: { sent: SentCommand; onOutcome(outcome: Outcome): void }) {
  const { command, jobNumber, sentAt, outcome } = sent;
  const { socket, messages } = useJob(outcome === undefined ? jobNumber : undefined);
  const reported = messages.map(outcomeOf).find((found) => found !== undefined);
  const found = reported ?? (socket.state === "ended" ? NO_RESULT : undefined);
  useEffect(() => {
    if (outcome === undefined && found !== undefined) onOutcome(found);
  }, [found !== undefined]);
  return (
    <li>
      <span class="spread">
        <code>{command}</code>
        <span class="soft">
          <Ago ts={sentAt} /> · <a href={href(["jobs", jobNumber])}>Show job</a>
        </span>
      </span>
      <span class="row">
        <JobStateMark state={outcome?.state ?? "running"} />
        <span>{outcome?.text ?? (socket.state === "lost" ? "Reconnecting…" : "Sent. Waiting for the result…")}</span>
      </span>
    </li>
  );
}
