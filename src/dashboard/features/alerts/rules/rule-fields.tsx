import { useId } from "preact/hooks";
import type { Severity } from "../../../../schemas/events.ts";
import { ApiError } from "../../../api/call.ts";
import { Checkbox } from "../../../components/choices.tsx";
import { DurationInput } from "../../../components/duration-input.tsx";
import { Field, SelectField, TextField } from "../../../components/form.tsx";
import { LabelFields } from "../../../selectors/label-fields.tsx";
import { SelectorField } from "../../../selectors/selector-input.tsx";
import { BY_SEVERITY, SEVERITY_TEXTS } from "../../events/event-text.ts";
import { newCondition } from "./condition-draft.ts";
import { ConditionFields } from "./condition-fields.tsx";
import type { RuleDraft } from "./rule-draft.ts";

interface RuleFieldsProps {
  draft: RuleDraft;
  onDraft(draft: RuleDraft): void;
  /** The service's error about the rule. */
  error: Error | undefined;
  /** Names of metrics that are offered. */
  metrics: readonly string[];
}

const SEVERITIES = BY_SEVERITY.map((severity): [Severity, string] => [severity, SEVERITY_TEXTS[severity]]);

/** The fields of a rule. */
export function RuleFields({ draft, onDraft, error, metrics }: RuleFieldsProps) {
  const list = useId();
  const set = (change: Partial<RuleDraft>) => onDraft({ ...draft, ...change });
  return (
    <>
      <TextField
        label="Name"
        autocomplete="off"
        required
        maxLength={100}
        value={draft.name}
        onValue={(name) => set({ name })}
        error={isNameTaken(error) ? "There is a rule with this name." : ruleErrorAt(error, "name")}
      />
      <SelectorField
        label="Access points (selector)"
        hint="Empty: all access points."
        placeholder="site=uk/bristol/*"
        value={draft.selector}
        onValue={(selector) => set({ selector })}
        error={ruleErrorAt(error, "selector")}
      />
      <datalist id={list}>
        {metrics.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <fieldset class="rule-part">
        <legend>Fires if</legend>
        <ConditionFields
          label="Condition"
          draft={draft.condition}
          onDraft={(condition) => set({ condition })}
          metrics={list}
        />
        <FieldError message={ruleErrorAt(error, "condition")} />
        <DurationRow
          label="For at least"
          {...{ value: draft.holdsFor, error: ruleErrorAt(error, "for_s") }}
          onValue={(holdsFor) => set({ holdsFor })}
        />
      </fieldset>
      <ClearFields {...{ draft, set, error }} metrics={list} />
      <GroupFields {...{ draft, set, error }} />
      <SelectField
        label="Severity"
        value={draft.severity}
        options={SEVERITIES}
        onValue={(severity) => set({ severity })}
        error={ruleErrorAt(error, "severity")}
      />
      <TextField
        label="Text of the alert (optional)"
        hint="{{ap_id}}, {{value}}, {{group}} and the name of any label in double braces are replaced."
        autocomplete="off"
        maxLength={500}
        value={draft.text}
        onValue={(text) => set({ text })}
        error={ruleErrorAt(error, "text")}
      />
      <TextField
        label="Description (optional)"
        autocomplete="off"
        maxLength={500}
        value={draft.description}
        onValue={(description) => set({ description })}
        error={ruleErrorAt(error, "description")}
      />
      <LabelFields legend="Labels of its alerts (optional)" rows={draft.labels} onRows={(labels) => set({ labels })} />
      <FieldError message={ruleErrorAt(error, "labels")} />
    </>
  );
}

interface PartProps extends Pick<RuleFieldsProps, "draft" | "error"> {
  set(change: Partial<RuleDraft>): void;
}

function ClearFields({ draft, set, error, metrics }: PartProps & { metrics: string }) {
  return (
    <fieldset class="rule-part">
      <legend>Ends if</legend>
      <Checkbox
        label="Another condition ends the alert"
        hint={draft.clear === undefined ? "The alert ends when the condition above does not hold any more." : undefined}
        isChecked={draft.clear !== undefined}
        onChecked={(isChecked) =>
          set({ clear: isChecked ? newCondition({ ...draft.condition, op: opposite(draft.condition.op) }) : undefined })
        }
      />
      {draft.clear !== undefined && (
        <ConditionFields
          label="End condition"
          draft={draft.clear}
          onDraft={(clear) => set({ clear })}
          metrics={metrics}
        />
      )}
      <FieldError message={ruleErrorAt(error, "clear", "condition")} />
      <DurationRow
        label="For at least"
        name="End: for at least"
        {...{ value: draft.clearFor, error: ruleErrorAt(error, "clear", "for_s") }}
        onValue={(clearFor) => set({ clearFor })}
      />
    </fieldset>
  );
}

const opposite = (op: RuleDraft["condition"]["op"]) => (op === ">" || op === ">=" ? "<" : ">");

function GroupFields({ draft, set, error }: PartProps) {
  const { group } = draft;
  return (
    <fieldset class="rule-part">
      <legend>One alert for a group</legend>
      <Checkbox
        label="Alert about a share of a group, such as a site"
        hint="A site without power then gives one alert, not one for each access point."
        isChecked={group !== undefined}
        onChecked={(isChecked) => set({ group: isChecked ? { by: "site", percent: "50" } : undefined })}
      />
      {group !== undefined && (
        <div class="side-by-side">
          <TextField
            label="Label of the groups"
            required
            maxLength={63}
            autocomplete="off"
            value={group.by}
            onValue={(by) => set({ group: { ...group, by } })}
            error={ruleErrorAt(error, "group", "by")}
          />
          <TextField
            label="Share (%)"
            type="number"
            required
            min={1}
            max={100}
            step="any"
            value={group.percent}
            onValue={(percent) => set({ group: { ...group, percent } })}
            error={ruleErrorAt(error, "group", "percent")}
          />
        </div>
      )}
    </fieldset>
  );
}

function DurationRow({
  label,
  name = label,
  value,
  onValue,
  error,
}: {
  label: string;
  name?: string;
  value: RuleDraft["holdsFor"];
  onValue(value: RuleDraft["holdsFor"]): void;
  error: string | undefined;
}) {
  const id = useId();
  return (
    <Field {...{ id, label, error }}>
      <DurationInput {...{ id, value, onValue }} label={name} describedBy={error && `${id}-error`} />
    </Field>
  );
}

function FieldError({ message }: { message: string | undefined }) {
  return message === undefined ? null : (
    <p class="field-error" role="alert">
      {message}
    </p>
  );
}

/** The service also responds with 409 if there are too many rules. */
export const isNameTaken = (error: Error | undefined): boolean =>
  error instanceof ApiError && error.status === 409 && error.message.endsWith("already exists");

/** Returns the service's message about a part of a rule. In a request the rule is the body's `spec` or `rule`. */
export function ruleErrorAt(error: Error | undefined, ...path: string[]): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const found = error.fieldErrors.find(({ loc }) => {
    const inRule = loc.filter(
      (segment, i) => !(i === 0 && segment === "body") && segment !== "spec" && segment !== "rule",
    );
    return path.every((segment, i) => inRule[i] === segment);
  });
  return found?.msg.replace(/^Value error, /, "");
}
