import { runningEmulators } from "../../api/operations.ts";
import { usePoll } from "../../lib/poll.ts";
import { RunningEmulations } from "./running-emulations.tsx";
import { SpinUpForm } from "./spin-up-form.tsx";
import { lastSpinUp, SpinUpResult } from "./spin-up-result.tsx";
import "../../style/emulator.css";

const POLL_INTERVAL_MS = 5_000;

export function Emulator() {
  const spinUp = lastSpinUp.value;
  const jobs = usePoll(runningEmulators, POLL_INTERVAL_MS);
  return (
    <div class="stack">
      <header>
        <h1>Emulator</h1>
        <p class="soft">
          Emulated access points behave like real ones: they report every second and carry out commands.
        </p>
      </header>
      <div class="emulator">
        <SpinUpForm
          onStarted={(started) => {
            lastSpinUp.value = started;
            jobs.refresh();
          }}
        />
        <div class="stack">
          {spinUp !== undefined && (
            <SpinUpResult key={spinUp.job_number} spinUp={spinUp} onClose={() => (lastSpinUp.value = undefined)} />
          )}
          <RunningEmulations jobs={jobs} />
        </div>
      </div>
    </div>
  );
}
