import { runningEmulators } from "../../api/operations.ts";
import { usePoll } from "../../lib/poll.ts";
import { lastSpinUp } from "./last-spin-up.ts";
import { Running } from "./running.tsx";
import { SpinUpForm } from "./spin-up-form.tsx";
import { JustMade } from "./spin-up-result.tsx";
import "../../style/emulator.css";

const EVERY_MS = 5_000;

export function Emulator() {
  const made = lastSpinUp.value;
  const jobs = usePoll(runningEmulators, EVERY_MS);
  return (
    <div class="stack">
      <header>
        <h1>Emulator</h1>
        <p class="soft">Access points that behave like real ones: they report every second, and obey.</p>
      </header>
      <div class="emulator">
        <SpinUpForm
          onMade={(answer) => {
            lastSpinUp.value = answer;
            jobs.refresh();
          }}
        />
        <div class="stack">
          {made !== undefined && (
            <JustMade key={made.job_number} made={made} onClose={() => (lastSpinUp.value = undefined)} />
          )}
          <Running jobs={jobs} />
        </div>
      </div>
    </div>
  );
}
