import { useState } from "preact/hooks";
import type { AlertRule } from "../../../../schemas/alerts/saved-rule.ts";
import { deleteRule, listRules, replaceRule } from "../../../api/alert-calls.ts";
import { href, navigate } from "../../../app/router.ts";
import { Confirm } from "../../../components/dialog.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { durationText } from "../../../lib/duration.ts";
import { type Loaded, useLoaded } from "../../../lib/load.ts";
import { RecordButton, RecordRow, Records } from "../../administration/records.tsx";
import { SeverityMark } from "../../events/severity.tsx";
import { mayChangeRules } from "../permissions.ts";
import { conditionText } from "./condition-text.ts";
import { NEW, RULES_PATH } from "./rule-editor.tsx";

/** The alert rules. Administrators change them; all others can look at them and test them. */
export function RulesTab() {
  const loaded = useLoaded(async (signal) => (await listRules(signal)).sort(byName));
  const [deleted, setDeleted] = useState<AlertRule>();
  return (
    <>
      <Records
        noun={{ one: "rule", many: "rules" }}
        loaded={loaded}
        textOf={({ name, spec }) => `${name} ${spec.selector} ${spec.description} ${conditionText(spec.condition)}`}
        create={{
          label: mayChangeRules() ? "Create rule" : "Try a rule",
          onClick: () => navigate([...RULES_PATH, NEW]),
        }}
        empty="A rule says which state of an access point causes an alert."
      >
        {(rule) => <RuleRow key={rule.id} rule={rule} loaded={loaded} onDelete={setDeleted} />}
      </Records>
      {deleted !== undefined && (
        <Confirm
          title={`Delete the rule ${deleted.name}?`}
          label="Delete rule"
          onConfirm={async () => {
            await deleteRule(deleted.id);
            notify(`The rule ${deleted.name} was deleted.`);
            loaded.refresh();
          }}
          onClose={() => setDeleted(undefined)}
        >
          <p>Its alerts end. You cannot undo this.</p>
        </Confirm>
      )}
    </>
  );
}

const collator = new Intl.Collator("en", { numeric: true });
const byName = (one: AlertRule, other: AlertRule): number => collator.compare(one.name, other.name);

function RuleRow({
  rule,
  loaded,
  onDelete,
}: {
  rule: AlertRule;
  loaded: Loaded<unknown>;
  onDelete(rule: AlertRule): void;
}) {
  const { id, name, enabled, spec } = rule;
  const { run, isBusy, error } = useAction(async () => {
    await replaceRule(id, { name, enabled: !enabled, spec });
    notify(`The rule ${name} was ${enabled ? "disabled" : "enabled"}.`);
    loaded.refresh();
  });
  return (
    <RecordRow
      name={
        <>
          <a href={href([...RULES_PATH, id])}>{name}</a>
          <div class="rule-state">
            <SeverityMark severity={spec.severity} /> ·{" "}
            <span class={enabled ? "rule-enabled" : "soft"}>{enabled ? "enabled" : "disabled"}</span>
          </div>
        </>
      }
      about={
        <>
          <div>
            {conditionText(spec.condition)}
            {spec.for_s > 0 && `, for ${durationText(spec.for_s)}`}
            {spec.group !== undefined && `, on ${spec.group.percent} % of a ${spec.group.by}`}
          </div>
          <code>{spec.selector === "" ? "all access points" : spec.selector}</code>
          <Failed error={error} />
        </>
      }
    >
      {mayChangeRules() ? (
        <>
          <button
            type="button"
            class="small"
            disabled={isBusy}
            aria-label={`${enabled ? "Disable" : "Enable"}: ${name}`}
            onClick={() => void run()}
          >
            {enabled ? "Disable" : "Enable"}
          </button>
          <RecordButton label="Edit" of={name} onClick={() => navigate([...RULES_PATH, id])} />
          <RecordButton label="Delete" of={name} isDangerous onClick={() => onDelete(rule)} />
        </>
      ) : (
        <RecordButton label="Test" of={name} onClick={() => navigate([...RULES_PATH, id])} />
      )}
    </RecordRow>
  );
}
