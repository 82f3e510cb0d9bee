import { useEffect } from "preact/hooks";
import { href } from "../../app/router.ts";
import { JobStateMark } from "../../components/badges.tsx";
import { Ago } from "../../components/time.tsx";
import { useJob } from "../../lib/job-status.ts";
import { NO_ANSWER, type Outcome, outcomeOf } from "./command-outcome.ts";

export interface SentCommand {
  command: string;
  jobNumber: string;
  sentAt: string;
  outcome?: Outcome;
}

/** A command that was sent. Listens for the answer until there is one. */
export function SentCommandLine({ sent, onOutcome }: { sent: SentCommand; onOutcome(outcome: Outcome): void }) {
  const { command, jobNumber, sentAt, outcome } = sent;
  const { socket, messages } = useJob(outcome === undefined ? jobNumber : undefined);
  const heard = messages.map(outcomeOf).find((found) => found !== undefined);
  const found = heard ?? (socket.state === "ended" ? NO_ANSWER : undefined);
  useEffect(() => {
    if (outcome === undefined && found !== undefined) onOutcome(found);
  }, [found !== undefined]);
  return (
    <li>
      <span class="spread">
        <code>{command}</code>
        <span class="soft">
          <Ago ts={sentAt} /> · <a href={href(["jobs", jobNumber])}>job</a>
        </span>
      </span>
      <span class="row">
        <JobStateMark state={outcome?.state ?? "running"} />
        <span>{outcome?.text ?? (socket.state === "lost" ? "Listening again…" : "Sent; waiting for its answer…")}</span>
      </span>
    </li>
  );
}
