import { useState } from "preact/hooks";
import { ApiError } from "../../api/call.ts";
import { serviceNowMs } from "../../api/clock.ts";
import { sendCommand } from "../../api/operations.ts";
import { Confirm } from "../../components/dialog.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { NumberCommand, OtherCommand } from "./command-forms.tsx";
import type { Outcome } from "./command-outcome.ts";
import { type SentCommand, SentCommandLine } from "./sent-command.tsx";

const KEPT = 10;

/** Those without an argument. Some are asked about first: people lose their connection. */
const PLAIN: readonly { name: string; label: string; warning?: string }[] = [
  { name: "power_on", label: "Switch on" },
  {
    name: "power_off",
    label: "Switch off",
    warning: "Its devices lose their connection until it is switched on again.",
  },
  { name: "reboot", label: "Restart", warning: "Its devices lose their connection for a moment." },
];

/** Tells the access point what to do, and shows what it answers. */
export function Commands({ apId, known }: { apId: string; known: unknown }) {
  const [sent, setSent] = useState<readonly SentCommand[]>([]);
  const [asked, setAsked] = useState<(typeof PLAIN)[number]>();
  const send = async (command: string) => {
    const { job_number: jobNumber } = await sendCommand(apId, command).catch(saidWhen);
    setSent((before) =>
      [{ command, jobNumber, sentAt: new Date(serviceNowMs()).toISOString() }, ...before].slice(0, KEPT),
    );
  };
  const { run, isBusy, error } = useAction(send);
  const conclude = (jobNumber: string, outcome: Outcome) =>
    setSent((before) => before.map((one) => (one.jobNumber === jobNumber ? { ...one, outcome } : one)));

  // Where it says which commands it knows, it knows no others.
  const names = Array.isArray(known) ? known.filter((name) => typeof name === "string") : undefined;
  const knows = (name: string) => names?.includes(name) ?? true;
  const plain = PLAIN.filter(({ name }) => knows(name));
  return (
    <section class="card stack commands" aria-labelledby="commands-title">
      <h2 id="commands-title">Commands</h2>
      {plain.length > 0 && (
        <div class="row">
          {plain.map((command) => (
            <button
              type="button"
              key={command.name}
              disabled={isBusy}
              onClick={() => (command.warning === undefined ? void run(command.name) : setAsked(command))}
            >
              {command.label}
            </button>
          ))}
        </div>
      )}
      {knows("set_tx_power") && (
        <NumberCommand label="Transmit power (dBm)" name="set_tx_power" step="any" isBusy={isBusy} onSend={run} />
      )}
      {knows("set_channel") && (
        <NumberCommand label="Channel" name="set_channel" step={1} min={0} isBusy={isBusy} onSend={run} />
      )}
      <OtherCommand names={names} isBusy={isBusy} onSend={run} />
      <Failed error={error} />
      <div>
        <h3>Sent from here</h3>
        {sent.length === 0 && <p class="soft">Nothing yet. Answers appear here as they come.</p>}
        <ol class="sent-commands" aria-live="polite">
          {sent.map((one) => (
            <SentCommandLine key={one.jobNumber} sent={one} onOutcome={(outcome) => conclude(one.jobNumber, outcome)} />
          ))}
        </ol>
      </div>
      {asked !== undefined && (
        <Confirm
          title={`${asked.label}: ${apId}?`}
          label={asked.label}
          onConfirm={() => send(asked.name)}
          onClose={() => setAsked(undefined)}
        >
          <p>{asked.warning}</p>
        </Confirm>
      )}
    </section>
  );
}

/** Of two commands in a row the first one wins; the service says when the next one may follow. */
function saidWhen(error: unknown): never {
  if (!(error instanceof ApiError) || error.status !== 409 || error.retryAfterMs === undefined) throw error;
  const seconds = Math.ceil(error.retryAfterMs / 1_000);
  throw new Error(`Another command was sent to it a moment ago. Send this one again in ${seconds} s.`);
}
