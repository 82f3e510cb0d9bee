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

const MAX_SENT = 10;

/** Commands without an argument. Those with a warning need a confirmation, because devices lose their connection. */
const SIMPLE_COMMANDS: readonly { name: string; label: string; warning?: string }[] = [
  { name: "power_on", label: "Switch on" },
  {
    name: "power_off",
    label: "Switch off",
    warning: "Connected devices lose their connection until you switch it on again.",
  },
  { name: "reboot", label: "Restart", warning: "Connected devices lose their connection for a moment." },
];

/** Sends commands to the access point and shows their results. */
export function Commands({ apId, supported }: { apId: string; supported: unknown }) {
  const [sent, setSent] = useState<readonly SentCommand[]>([]);
  const [confirming, setConfirming] = useState<(typeof SIMPLE_COMMANDS)[number]>();
  const send = async (command: string) => {
    const { job_number: jobNumber } = await sendCommand(apId, command).catch(explainConflict);
    setSent((before) =>
      [{ command, jobNumber, sentAt: new Date(serviceNowMs()).toISOString() }, ...before].slice(0, MAX_SENT),
    );
  };
  const { run, isBusy, error } = useAction(send);
  const setOutcome = (jobNumber: string, outcome: Outcome) =>
    setSent((before) => before.map((one) => (one.jobNumber === jobNumber ? { ...one, outcome } : one)));

  // An access point that lists its commands supports no others. One without a list may support any.
  const names = Array.isArray(supported) ? supported.filter((name) => typeof name === "string") : undefined;
  const supports = (name: string) => names?.includes(name) ?? true;
  const simpleCommands = SIMPLE_COMMANDS.filter(({ name }) => supports(name));
  return (
    <section class="card stack commands" aria-labelledby="commands-title">
      <h2 id="commands-title">Commands</h2>
      {simpleCommands.length > 0 && (
        <div class="row">
          {simpleCommands.map((command) => (
            <button
              type="button"
              key={command.name}
              disabled={isBusy}
              onClick={() => (command.warning === undefined ? void run(command.name) : setConfirming(command))}
            >
              {command.label}
            </button>
          ))}
        </div>
      )}
      {supports("set_tx_power") && (
        <NumberCommand label="Transmit power (dBm)" name="set_tx_power" step="any" isBusy={isBusy} onSend={run} />
      )}
      {supports("set_channel") && (
        <NumberCommand label="Channel" name="set_channel" step={1} min={0} isBusy={isBusy} onSend={run} />
      )}
      <OtherCommand supported={names} isBusy={isBusy} onSend={run} />
      <Failed error={error} />
      <div>
        <h3>Sent commands</h3>
        {sent.length === 0 && <p class="soft">No commands sent yet. Results appear here.</p>}
        <ol class="sent-commands" aria-live="polite">
          {sent.map((one) => (
            <SentCommandLine
              key={one.jobNumber}
              sent={one}
              onOutcome={(outcome) => setOutcome(one.jobNumber, outcome)}
            />
          ))}
        </ol>
      </div>
      {confirming !== undefined && (
        <Confirm
          title={`${confirming.label} ${apId}?`}
          label={confirming.label}
          onConfirm={() => send(confirming.name)}
          onClose={() => setConfirming(undefined)}
        >
          <p>{confirming.warning}</p>
        </Confirm>
      )}
    </section>
  );
}

/** Throws an error that says when to try again, if the service rejected a command because of an earlier one. */
function explainConflict(error: unknown): never {
  if (!(error instanceof ApiError) || error.status !== 409 || error.retryAfterMs === undefined) throw error;
  const seconds = Math.ceil(error.retryAfterMs / 1_000);
  throw new Error(`Another command was just sent to this access point. Try again in ${seconds} s.`);
}
