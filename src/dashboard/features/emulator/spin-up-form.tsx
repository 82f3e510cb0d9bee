import { useRef, useState } from "preact/hooks";
import { ApiError } from "../../api/call.ts";
import { spinUp } from "../../api/operations.ts";
import { Form, fieldErrorOf, SubmitButton } from "../../components/form.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { countOf, countText } from "../../lib/format.ts";
import { type Draft, faultsOf, type Group, LIMITS, NEW_DRAFT, requestOf, withGroup } from "./draft.ts";
import { TEN_MINUTES } from "./duration.ts";
import { DurationField } from "./duration-field.tsx";
import { GroupFields } from "./group-fields.tsx";
import type { Made } from "./last-spin-up.ts";

/** What is to be emulated. */
export function SpinUpForm({ onMade }: { onMade(made: Made): void }) {
  const [draft, setDraft] = useState<Draft>(NEW_DRAFT);
  const sent = useRef<Draft>(undefined);
  const { run, isBusy, error } = useAction(async () => {
    sent.current = draft;
    const request = requestOf(draft);
    const answer = await spinUp(request);
    onMade({ ...answer, durationS: Math.max(...request.emulators.map(({ duration }) => duration)) });
  });
  const { groups, duration } = draft;
  const hasSeveral = groups.length > 1;
  const inAll = groups.reduce((sum, { accessPoints }) => sum + Number(accessPoints), 0);
  const devices = groups.reduce((sum, group) => sum + Number(group.accessPoints) * Number(group.devices), 0);
  const isTooMany = inAll > LIMITS.accessPointsInAll;
  const saidOfAll = fieldErrorOf(error, "body", "emulators");
  const setGroup = (changed: Group) =>
    setDraft({ ...draft, groups: groups.map((group) => (group.key === changed.key ? changed : group)) });
  return (
    <section class="card" aria-labelledby="spin-up">
      <h2 id="spin-up">Start access points</h2>
      <Form onSubmit={() => void run()}>
        {groups.map((group, i) => (
          <GroupFields
            key={group.key}
            group={group}
            number={hasSeveral ? i + 1 : undefined}
            faults={faultsOf(error, sent.current, group)}
            hasOwnDuration={duration === undefined}
            onGroup={setGroup}
            onRemove={() => setDraft({ ...draft, groups: groups.filter(({ key }) => key !== group.key) })}
          />
        ))}
        <div class="row">
          <button
            type="button"
            class="small"
            disabled={groups.length >= LIMITS.groups}
            onClick={() => setDraft(withGroup(draft))}
          >
            Add a group
          </button>
          {(hasSeveral || duration === undefined) && (
            <label class="row">
              <input
                type="checkbox"
                checked={duration !== undefined}
                onChange={({ currentTarget }) =>
                  setDraft({
                    groups,
                    duration: currentTarget.checked ? (groups[0]?.duration ?? TEN_MINUTES) : undefined,
                  })
                }
              />
              All run equally long
            </label>
          )}
        </div>
        {duration !== undefined && (
          <DurationField
            label="Duration"
            value={duration}
            onValue={(changed) => setDraft({ ...draft, duration: changed })}
            error={sent.current?.duration === duration ? fieldErrorOf(error, "emulators", 0, "duration") : undefined}
          />
        )}
        {isTooMany && (
          <p class="field-error" role="alert">
            There may be {countOf(LIMITS.accessPointsInAll, "access point")} in all, not {countText(inAll)}.
          </p>
        )}
        {error instanceof ApiError && error.fieldErrors.length > 0 ? (
          <p class="field-error" role="alert">
            {saidOfAll ?? "Nothing was started. See what is marked above."}
          </p>
        ) : (
          <Failed error={error} />
        )}
        <footer class="spread">
          <span class="soft">
            {countOf(inAll, "access point")} with {countOf(devices, "device")} in all
          </span>
          <SubmitButton isBusy={isBusy || isTooMany}>Start</SubmitButton>
        </footer>
      </Form>
    </section>
  );
}
