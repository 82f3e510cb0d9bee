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

const NAMES_INTERVAL_MS = 60_000;
const MAX_SUGGESTIONS = 200;

/** Requests the reports of an access point in a period. The period may end in the future. */
export function RequestHistory({ agent: initialAgent }: { agent: string }) {
  const [agent, setAgent] = useState(initialAgent);
  const [period, setPeriod] = useState<Period>(() => periodOf(LAST_HOUR, serviceNowMs()));
  const { run, isBusy, error } = useAction(async () => {
    const { job_number } = await requestData(agent.trim(), instantOf(period.from), instantOf(period.to));
    // The job is new and has no other reader, so this page may receive all of it.
    navigate(["jobs", job_number], { receive: "all" });
  });
  const isUnknown = error instanceof ApiError && error.status === 404;
  const fieldErrors = {
    agent: isUnknown ? "There is no access point with this name. Check the spelling." : fieldErrorOf(error, "agent_id"),
    from: fieldErrorOf(error, "start_time"),
    to: fieldErrorOf(error, "end_time"),
  };
  const hasFieldError = Object.values(fieldErrors).some((fieldError) => fieldError !== undefined);
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
            error={fieldErrors.agent}
          />
          <NameSuggestions id={names} text={agent} />
          <TextField
            label="From"
            type="datetime-local"
            required
            step={1}
            value={period.from}
            onValue={(from) => setPeriod({ ...period, from })}
            error={fieldErrors.from}
          />
          <TextField
            label="To"
            type="datetime-local"
            required
            step={1}
            value={period.to}
            onValue={(to) => setPeriod({ ...period, to })}
            error={fieldErrors.to}
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
        <p class="hint">
          Times are in your local time zone. If the period ends in the future, new reports are added until then.
        </p>
        {!hasFieldError && <Failed error={error} />}
        <footer>
          <SubmitButton isBusy={isBusy}>Request history</SubmitButton>
        </footer>
      </Form>
    </section>
  );
}

/** Suggests matching names. There may be thousands, so it offers only the first ones. */
function NameSuggestions({ id, text }: { id: string; text: string }) {
  const { data } = usePoll((signal) => overview("", signal), NAMES_INTERVAL_MS);
  const searched = text.trim().toLowerCase();
  const names = (data?.access_points ?? [])
    .filter(({ ap_id }) => ap_id.toLowerCase().includes(searched))
    .slice(0, MAX_SUGGESTIONS);
  return (
    <datalist id={id}>
      {names.map(({ ap_id }) => (
        <option key={ap_id} value={ap_id} />
      ))}
    </datalist>
  );
}
