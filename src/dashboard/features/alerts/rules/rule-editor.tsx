import { useMemo, useState } from "preact/hooks";
import type { Condition } from "../../../../schemas/alerts/rule.ts";
import type { AlertRule } from "../../../../schemas/alerts/saved-rule.ts";
import { createRule, readRule, replaceRule } from "../../../api/alert-calls.ts";
import { hasFieldErrors } from "../../../api/call.ts";
import { agentMetrics, overview } from "../../../api/operations.ts";
import { href, navigate } from "../../../app/router.ts";
import { windowOf } from "../../../charts/windows.ts";
import { Checkbox } from "../../../components/choices.tsx";
import { Form, SubmitButton } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed, Loading } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { useLoaded } from "../../../lib/load.ts";
import { errorsIn } from "../../../selectors/label-draft.ts";
import { mayChangeRules } from "../permissions.ts";
import { BacktestPanel } from "./backtest-panel.tsx";
import { newRule, type RuleDraft, ruleIn, specIn, toRuleDraft } from "./rule-draft.ts";
import { isNameTaken, RuleFields } from "./rule-fields.tsx";
import { useBacktest } from "./use-backtest.ts";

export const RULES_PATH = ["alerts", "rules"];
/** Creates a rule instead of opening one. Rules have other ids. */
export const NEW = "new";

const COMMON_METRICS = ["load", "quality", "users"];

/** Opens a rule in the editor. */
export function RuleEditor({ id }: { id: string }) {
  const { data, error, refresh } = useLoaded(
    async (signal) => (id === NEW ? undefined : await readRule(id, signal)),
    [id],
  );
  if (id !== NEW && data === undefined)
    return error === undefined ? <Loading lines={8} /> : <Failed error={error} onRetry={refresh} />;
  return <Editor key={id} rule={data} />;
}

function Editor({ rule }: { rule: AlertRule | undefined }) {
  const [draft, setDraft] = useState<RuleDraft>(() => (rule === undefined ? newRule() : toRuleDraft(rule)));
  const [window, setWindow] = useState(() => windowOf("24h"));
  const spec = useMemo(() => specIn(draft), [draft]);
  const backtest = useBacktest(spec, window.ms);
  const metrics = useMetrics(spec?.selector ?? "");
  const [sent, setSent] = useState<RuleDraft>();
  const save = useAction(async () => {
    setSent(draft);
    const changed = ruleIn(draft);
    if (changed === undefined || errorsIn(draft.labels).size > 0) return;
    await (rule === undefined ? createRule(changed) : replaceRule(rule.id, changed));
    notify(`The rule ${changed.name} was saved.`);
    navigate(RULES_PATH);
  });
  const mayChange = mayChangeRules();
  // The error of an earlier version may be corrected already.
  const saveError = draft === sent ? save.error : undefined;
  return (
    <section class="stack" aria-labelledby="rule-title">
      <div>
        <a href={href(RULES_PATH)}>← All rules</a>
        <h2 id="rule-title">{rule === undefined ? "Create rule" : `Rule ${rule.name}`}</h2>
      </div>
      <div class="rule-editor">
        <div class="card">
          <Form onSubmit={() => void (mayChange && save.run())}>
            <RuleFields draft={draft} onDraft={setDraft} error={saveError ?? backtest.error} metrics={metrics} />
            <Checkbox
              label="Enabled"
              isChecked={draft.enabled}
              onChecked={(enabled) => setDraft({ ...draft, enabled })}
            />
            {!isNameTaken(saveError) && !hasFieldErrors(saveError) && <Failed error={saveError} />}
            <footer>
              <a class="button" href={href(RULES_PATH)}>
                {mayChange ? "Cancel" : "Close"}
              </a>
              {mayChange && <SubmitButton isBusy={save.isBusy}>Save rule</SubmitButton>}
            </footer>
            {!mayChange && <p class="hint">You can change and test the rule here. Only administrators can save it.</p>}
          </Form>
        </div>
        <BacktestPanel
          backtest={backtest}
          condition={spec?.condition as Condition | undefined}
          selector={spec?.selector ?? ""}
          window={window}
          onWindow={setWindow}
        />
      </div>
    </section>
  );
}

/** Returns the metrics of an access point that the rule watches, as suggestions. */
function useMetrics(selector: string): readonly string[] {
  const { data } = useLoaded(
    async (signal) => {
      const { access_points } = await overview(selector, signal);
      const example = access_points.find(({ online }) => online) ?? access_points[0];
      if (example === undefined) return [];
      return (await agentMetrics(example.ap_id, "24h", signal)).metrics.map(({ name }) => name);
    },
    [selector],
  );
  return [...new Set([...COMMON_METRICS, ...(data ?? [])])];
}
