import { type ScopedAgent, scopeFilter } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, visibleAgents } from "../auth/permissions.ts";
import type { LabelledAgents } from "../fleet/labelled-agents.ts";
import type { Selectors } from "../fleet/selectors.ts";
import { toIsoTime } from "../lib/iso-time.ts";
import { type Labels, matches } from "../lib/selectors.ts";
import { type CompiledRule, compileRule } from "../rules/evaluator.ts";
import { renderText } from "../rules/rule-text.ts";
import { type Backtest, type BacktestRequest, MAX_SAMPLES_MS } from "../schemas/alerts/backtest.ts";
import type { Resolution } from "../telemetry/store/rule-range.ts";
import type { RuleReader } from "../telemetry/store/rule-reader.ts";
import { groupAlerts } from "./group-share.ts";
import { Evaluation } from "./past-alerts.ts";
import type { ReplayedAlert } from "./replay.ts";

/** Tests rules on the past: which alerts would a rule have sent? */
export interface Backtests {
  run(actor: Actor, request: BacktestRequest): Promise<Backtest>;
}

export interface BacktestsOptions {
  agents: LabelledAgents;
  selectors: Selectors;
  reader: RuleReader;
  /** Days for which samples are stored. Minutes are stored for longer. */
  telemetryDays: number;
  now?: () => number;
}

const DAY_MS = 86_400_000;
/** `auto` reads samples of this many agents and days. Their number is not known: at one per second, these are 20 million. */
const MAX_AGENT_DAYS = 250;
const FLAP_MS = 10 * 60_000;
const MAX_FLAPPING = 100;

/** The alerts of an agent or of a group. */
interface Subject {
  apId: string | null;
  group: string | null;
  labels: Labels;
  alerts: ReplayedAlert[];
}

export function createBacktests(options: BacktestsOptions): Backtests {
  const { agents, selectors, reader, telemetryDays, now = Date.now } = options;

  const watchedAgents = async (actor: Actor, rule: CompiledRule): Promise<ScopedAgent[]> => {
    const selector = await selectors.resolve(actor, rule.selector, { place: "body", loc: ["rule", "selector"] });
    const isVisible = scopeFilter(visibleAgents(actor));
    const by = rule.spec.group?.by;
    return (await agents()).filter(
      (agent) =>
        isVisible(agent) && matches(selector, agent.labels) && (by === undefined || Object.hasOwn(agent.labels, by)),
    );
  };

  const chooseResolution = (fromMs: number, toMs: number, count: number): Resolution => {
    const isStored = fromMs >= now() - telemetryDays * DAY_MS;
    const isShort = toMs - fromMs <= MAX_SAMPLES_MS && ((toMs - fromMs) / DAY_MS) * count <= MAX_AGENT_DAYS;
    return isStored && isShort ? "samples" : "minutes";
  };

  return {
    async run(actor, { rule: spec, from: fromMs, to: toMs = now(), limit, ...request }) {
      authorize(actor, "alerts.test");
      authorize(actor, "agents.list");
      const rule = compileRule(spec);
      const watched = await watchedAgents(actor, rule);
      const resolution =
        request.resolution === "auto" ? chooseResolution(fromMs, toMs, watched.length) : request.resolution;
      const range = { apIds: watched.map(({ apId }) => apId), fromMs, toMs, resolution };
      const evaluation = new Evaluation(reader, rule, range, { now });
      const { alerts, isTruncated } = await evaluation.run();
      const subjects = spec.group === undefined ? toSubjects(watched, alerts) : toGroups(watched, alerts, spec.group);
      const all = subjects
        .flatMap((subject, agent) => subject.alerts.map((alert) => ({ agent, subject, alert })))
        .toSorted((a, b) => a.alert.firedMs - b.alert.firedMs || a.agent - b.agent);
      const listed = all.slice(0, limit);
      if (spec.group === undefined) await evaluation.addValues(listed);
      return {
        from: toIsoTime(fromMs),
        to: toIsoTime(toMs),
        resolution,
        agents: watched.length,
        total: all.length,
        alerts: listed.map(({ subject, alert }) => toListed(rule, subject, alert, toMs)),
        flaps: countFlaps(subjects),
        truncated: isTruncated,
      };
    },
  };
}

const toSubjects = (watched: readonly ScopedAgent[], alerts: readonly ReplayedAlert[][]): Subject[] =>
  watched.map(({ apId, labels }, i) => ({ apId, group: null, labels, alerts: alerts[i] ?? [] }));

function toGroups(
  watched: readonly ScopedAgent[],
  alerts: readonly ReplayedAlert[][],
  { by, percent }: { by: string; percent: number },
): Subject[] {
  const members = Map.groupBy(watched.keys(), (i) => watched[i]?.labels[by] ?? "");
  return [...members].map(([group, indexes]) => ({
    apId: null,
    group,
    labels: { [by]: group },
    alerts: groupAlerts(
      indexes.flatMap((i) => alerts[i] ?? []),
      { size: indexes.length, percent },
    ),
  }));
}

function toListed(
  { spec }: CompiledRule,
  { apId, group, labels }: Subject,
  { firedMs, resolvedMs, value }: ReplayedAlert,
  toMs: number,
): Backtest["alerts"][number] {
  return {
    ap_id: apId,
    group,
    fired_at: toIsoTime(firedMs),
    resolved_at: resolvedMs === null ? null : toIsoTime(resolvedMs),
    duration_s: ((resolvedMs ?? toMs) - firedMs) / 1000,
    value: value ?? null,
    text: renderText(spec, {
      apId: apId ?? undefined,
      group: group ?? undefined,
      value,
      labels: { ...labels, ...spec.labels },
    }),
  };
}

/** Counts alerts that fire again soon after they were resolved. */
function countFlaps(subjects: readonly Subject[]): Backtest["flaps"] {
  const isFlap = ({ firedMs }: ReplayedAlert, i: number, alerts: readonly ReplayedAlert[]): boolean =>
    firedMs - (alerts[i - 1]?.resolvedMs ?? -Infinity) <= FLAP_MS;
  const flapping = subjects
    .map(({ apId, group, alerts }) => ({ ap_id: apId, group, flaps: alerts.filter(isFlap).length }))
    .filter(({ flaps }) => flaps > 0)
    .toSorted((a, b) => b.flaps - a.flaps);
  return { total: flapping.reduce((sum, { flaps }) => sum + flaps, 0), most: flapping.slice(0, MAX_FLAPPING) };
}
