import { useId } from "preact/hooks";
import { DurationInput } from "../../../components/duration-input.tsx";
import {
  CONDITION_KINDS,
  type ConditionDraft,
  type ConditionKind,
  MAX_DEPTH,
  MAX_PARTS,
  newCondition,
  withKind,
} from "./condition-draft.ts";
import { OPERATOR_TEXTS, type Operator } from "./condition-text.ts";

interface ConditionFieldsProps {
  label: string;
  draft: ConditionDraft;
  onDraft(draft: ConditionDraft): void;
  /** The id of the list of metrics. */
  metrics: string;
  depth?: number;
}

/** Builds a condition: a kind, its fields, and for groups the conditions inside. */
export function ConditionFields({ label, draft, onDraft, metrics, depth = 1 }: ConditionFieldsProps) {
  const isGroup = draft.kind === "any" || draft.kind === "all";
  const kinds = Object.entries(CONDITION_KINDS).filter(
    ([kind]) => depth < MAX_DEPTH || (kind !== "any" && kind !== "all"),
  );
  return (
    <div class="condition-fields">
      <div class="condition-row">
        <select
          aria-label={`${label}: kind`}
          value={draft.kind}
          onChange={({ currentTarget }) => onDraft(withKind(draft, currentTarget.value as ConditionKind))}
        >
          {kinds.map(([kind, text]) => (
            <option key={kind} value={kind}>
              {text}
            </option>
          ))}
        </select>
        {!isGroup && <SimpleFields {...{ label, draft, onDraft, metrics }} />}
      </div>
      {isGroup && <Parts {...{ label, draft, onDraft, metrics, depth }} />}
    </div>
  );
}

function Parts({ label, draft, onDraft, metrics, depth }: Required<ConditionFieldsProps>) {
  const { parts } = draft;
  const change = (changed: ConditionDraft) =>
    onDraft({ ...draft, parts: parts.map((part) => (part.id === changed.id ? changed : part)) });
  return (
    <fieldset class="condition-parts">
      <legend class="hidden-text">{`${label}: ${CONDITION_KINDS[draft.kind]}`}</legend>
      {parts.map((part, i) => (
        <div class="condition-part" key={part.id}>
          {i > 0 && <span class="soft">{draft.kind === "any" ? "or" : "and"}</span>}
          <ConditionFields
            label={`${label} ${i + 1}`}
            draft={part}
            onDraft={change}
            metrics={metrics}
            depth={depth + 1}
          />
          {parts.length > 1 && (
            <button
              type="button"
              class="quiet"
              aria-label={`Remove ${label.toLowerCase()} ${i + 1}`}
              onClick={() => onDraft({ ...draft, parts: parts.filter((other) => other.id !== part.id) })}
            >
              ✕
            </button>
          )}
        </div>
      ))}
      {parts.length < MAX_PARTS && (
        <button type="button" class="small" onClick={() => onDraft({ ...draft, parts: [...parts, newCondition()] })}>
          Add condition
        </button>
      )}
    </fieldset>
  );
}

function SimpleFields({ label, draft, onDraft, metrics }: ConditionFieldsProps) {
  const id = useId();
  const { kind, op } = draft;
  const set = (change: Partial<ConditionDraft>) => onDraft({ ...draft, ...change });
  const number = (name: string, field: "value" | "factor" | "days", limits: object = {}) => (
    <input
      type="number"
      aria-label={`${label}: ${name}`}
      required
      step="any"
      {...limits}
      value={draft[field]}
      onInput={({ currentTarget }) => set({ [field]: currentTarget.value })}
    />
  );
  if (kind === "absence")
    return (
      <>
        <span>for</span>
        <DurationInput
          label={`${label}: time without a report`}
          min={1}
          value={draft.absence}
          onValue={(absence) => set({ absence })}
        />
      </>
    );
  return (
    <>
      <input
        id={id}
        class="metric-name"
        type="text"
        aria-label={`${label}: metric`}
        required
        maxLength={200}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        list={metrics}
        value={draft.metric}
        onInput={({ currentTarget }) => set({ metric: currentTarget.value })}
      />
      {kind === "rate" && (
        <>
          <span>per second, over</span>
          <DurationInput label={`${label}: time`} min={1} value={draft.over} onValue={(over) => set({ over })} />
        </>
      )}
      <select
        aria-label={`${label}: comparison`}
        value={op}
        onChange={({ currentTarget }) => set({ op: currentTarget.value as Operator })}
      >
        {Object.entries(OPERATOR_TEXTS).map(([operator, text]) => (
          <option key={operator} value={operator}>
            {text}
          </option>
        ))}
      </select>
      {kind === "baseline" ? (
        <>
          {number("factor", "factor")}
          <span>× the mean at this hour of the last</span>
          {number("days", "days", { min: 1, max: 28, step: 1 })}
          <span>days</span>
        </>
      ) : (
        number("value", "value")
      )}
    </>
  );
}
