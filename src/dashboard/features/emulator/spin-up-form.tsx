import { useRef, useState } from "preact/hooks";
import { ApiError } from "../../api/call.ts";
import { spinUp } from "../../api/operations.ts";
import { Form, fieldErrorOf, SubmitButton } from "../../components/form.tsx";
import { Failed } from "../../components/states.tsx";
import { useAction } from "../../lib/action.ts";
import { TEN_MINUTES } from "../../lib/duration.ts";
import { countOf, countText } from "../../lib/format.ts";
import { type Draft, type Group, groupErrors, LIMITS, NEW_DRAFT, requestOf, withGroup } from "./draft.ts";
import { DurationField } from "./duration-field.tsx";
import { GroupFields } from "./group-fields.tsx";
import type { SpinUp } from "./spin-up-result.tsx";

/** The form that starts an emulation. */
export function SpinUpForm({ onStarted }: { onStarted(spinUp: SpinUp): void }) {
  const [draft, setDraft] = useState<Draft>(NEW_DRAFT);
  const sent = useRef<Draft>(undefined);
  const { run, isBusy, error } = useAction(async () => {
    sent.current = draft;
    const request = requestOf(draft);
    const queued = await spinUp(request);
    onStarted({ ...queued, durationS: Math.max(...request.emulators.map(({ duration }) => duration)) });
  });
  const { groups, duration } = draft;
  const hasSeveral = groups.length > 1;
  const accessPoints = groups.reduce((sum, group) => sum + Number(group.accessPoints), 0);
  const devices = groups.reduce((sum, group) => sum + Number(group.accessPoints) * Number(group.devices), 0);
  const isTooMany = accessPoints > LIMITS.totalAccessPoints;
  const requestError = fieldErrorOf(error, "body", "emulators");
  const setGroup = (changed: Group) =>
    setDraft({ ...draft, groups: groups.map((group) => (group.key === changed.key ? changed : group)) });
  return (
    <section class="card" aria-labelledby="spin-up">
      <h2 id="spin-up">New emulation</h2>
      <Form onSubmit={() => void run()}>
        {groups.map((group, i) => (
          <GroupFields
            key={group.key}
            group={group}
            number={hasSeveral ? i + 1 : undefined}
            errors={groupErrors(error, sent.current, group)}
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
            Add group
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
              Same duration for all groups
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
            An emulation can have at most {countOf(LIMITS.totalAccessPoints, "access point")}. Reduce the total of{" "}
            {countText(accessPoints)}.
          </p>
        )}
        {error instanceof ApiError && error.fieldErrors.length > 0 ? (
          <p class="field-error" role="alert">
            {requestError ?? "Nothing was started. Correct the marked fields."}
          </p>
        ) : (
          <Failed error={error} />
        )}
        <footer class="spread">
          <span class="soft">
            {countOf(accessPoints, "access point")} with {countOf(devices, "device")} in total
          </span>
          <SubmitButton isBusy={isBusy || isTooMany}>Start emulation</SubmitButton>
        </footer>
      </Form>
    </section>
  );
}
