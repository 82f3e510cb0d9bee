import { useId, useState } from "preact/hooks";
import { ApiError } from "../../api/call.ts";
import { serviceNowMs } from "../../api/clock.ts";
import { overview, requestData } from "../../api/operations.ts";
import { navigate } from "../../app/router.ts";
import { Form, fieldErrorOf, SubmitButton, TextField } from "../../components/form.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { usePoll } from "../../lib/poll.ts";
import { instantOf, LAST_HOUR, type Period, PRESETS, periodOf } from "./period.ts";

const NAMES_EVERY_MS = 60_000;
const MAX_COMPLETIONS = 200;

/** Asks for what an access point has reported, or is about to. */
export function RequestHistory({ agent: given }: { agent: string }) {
  const [agent, setAgent] = useState(given);
  const [period, setPeriod] = useState<Period>(() => periodOf(LAST_HOUR, serviceNowMs()));
  const { run, isBusy, error } = useAction(async () => {
    const { job_number } = await requestData(agent.trim(), instantOf(period.from), instantOf(period.to));
    // Nobody else knows of this job yet, so all of it may be taken here.
    navigate(["jobs", job_number], { receive: "all" });
  });
  const isUnknown = error instanceof ApiError && error.status === 404;
  const faults = {
    agent: isUnknown ? "There is no access point of this name." : fieldErrorOf(error, "agent_id"),
    from: fieldErrorOf(error, "start_time"),
    to: fieldErrorOf(error, "end_time"),
  };
  const isSaidAtField = Object.values(faults).some((fault) => fault !== undefined);
  const names = useId();
  return (
    <section class="card request-history" aria-labelledby="request-history">
      <h2 id="request-history">Request history</h2>
      <Form onSubmit={() => void run()}>
        <div class="request-fields">
          <TextField
            label="Access point"
            autocomplete="off"
            required
            maxLength={64}
            list={names}
            value={agent}
            onValue={setAgent}
            error={faults.agent}
          />
          <Completions id={names} text={agent} />
          <TextField
            label="From"
            type="datetime-local"
            required
            step={1}
            value={period.from}
            onValue={(from) => setPeriod({ ...period, from })}
            error={faults.from}
          />
          <TextField
            label="To"
            type="datetime-local"
            required
            step={1}
            value={period.to}
            onValue={(to) => setPeriod({ ...period, to })}
            error={faults.to}
          />
        </div>
        <div class="row">
          {PRESETS.map((preset) => (
            <button
              key={preset.text}
              type="button"
              class="small"
              onClick={() => setPeriod(periodOf(preset, serviceNowMs()))}
            >
              {preset.text}
            </button>
          ))}
        </div>
        <p class="hint">Your local time. A period that ends in the future goes on with what is reported until then.</p>
        {!isSaidAtField && <Failed error={error} />}
        <footer>
          <SubmitButton isBusy={isBusy}>Request</SubmitButton>
        </footer>
      </Form>
    </section>
  );
}

/** Of thousands of names, those that the browser has a use for. */
function Completions({ id, text }: { id: string; text: string }) {
  const { data } = usePoll(overview, NAMES_EVERY_MS);
  const wanted = text.trim().toLowerCase();
  const names = (data?.access_points ?? [])
    .filter(({ ap_id }) => ap_id.toLowerCase().includes(wanted))
    .slice(0, MAX_COMPLETIONS);
  return (
    <datalist id={id}>
      {names.map(({ ap_id }) => (
        <option key={ap_id} value={ap_id} />
      ))}
    </datalist>
  );
}
