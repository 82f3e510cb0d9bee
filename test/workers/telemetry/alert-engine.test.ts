import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EnabledRule } from "../../../src/alerts/rule-store.ts";
import { compileRule } from "../../../src/rules/evaluator.ts";
import { anyReports, anyRule, END_S, type Report, transitionsOf } from "../../support/rules.ts";
import { agentOf, type EngineTest, ruleOf, START_MS, withEngine } from "./engine-support.ts";

const HIGH = ruleOf("high", { condition: { metric: "load", op: ">", value: 0.9 } });
const RULES = [
  HIGH,
  ruleOf("long", { condition: { metric: "load", op: ">", value: 0.5 }, for_s: 3, clear: { for_s: 2 } }),
  ruleOf("silent", { condition: { no_report_s: 4 }, clear: { for_s: 2 } }),
  ruleOf("rising", { condition: { rate_of: "load", over_s: 2, op: ">", value: 0.1 } }),
  ruleOf("falling", {
    condition: {
      any: [
        { rate_of: "load", over_s: 2, op: "<=", value: -0.1 },
        { rate_of: "users", over_s: 3, op: "<", value: -0.5 },
        { metric: "users", op: "<", value: 0 },
      ],
    },
    for_s: 1,
  }),
  ruleOf("either", {
    condition: { any: [{ metric: "users", op: "<", value: 1 }, { no_report_s: 3 }] },
    for_s: 1,
    clear: { condition: { metric: "users", op: ">", value: 2 }, for_s: 1 },
  }),
  ruleOf("both", {
    condition: {
      all: [
        { metric: "load", op: ">=", value: 0.6 },
        { metric: "users", op: "<=", value: 2 },
      ],
    },
    for_s: 2,
  }),
  ruleOf("edge", {
    condition: {
      any: [
        { metric: "load", op: "<", value: 0.6 },
        { metric: "extra", op: ">=", value: 1 },
      ],
    },
  }),
  ruleOf("site", { condition: { no_report_s: 5 }, group: { by: "site", percent: 50 } }),
];
const AGENTS = [agentOf("a", { site: "x" }), agentOf("b", { site: "x" })];

describe("the alert engine", () => {
  it("fires with the sample that makes the condition true, and resolves with the one that ends it", () =>
    withEngine((test) => {
      test.watch([HIGH], AGENTS);
      const startMs = test.nowMs;
      for (const load of [0.5, 0.95, 0.96, 0.2]) {
        test.report("a", { load });
        test.nowMs += 1_000;
      }
      expect(test.transitions).toEqual([
        `a online ${startMs}`,
        `a high fired ${startMs + 1_000} 0.95`,
        `a high resolved ${startMs + 3_000} 0.2`,
      ]);
      const [, fired, resolved] = test.events;
      expect(fired).toMatchObject({ kind: "alert", firedMs: startMs + 1_000, rule: { severity: "warning" } });
      expect(resolved).toMatchObject({ alertId: fired?.kind === "alert" && fired.alertId, firedMs: startMs + 1_000 });
    }));

  it("is not affected by late and repeated samples", () =>
    withEngine((test) => {
      test.watch([HIGH], AGENTS);
      test.report("a", { load: 0.1 });
      const before = test.transitions;
      test.report("a", { load: 0.99 }, test.nowMs - 5_000);
      test.report("a", { load: 0.99 });
      expect(test.transitions).toEqual(before);
    }));

  it("takes the metrics of one time from several requests, in any order, and each of them once", () =>
    withEngine((test) => {
      test.watch([HIGH, RULES[3] ?? HIGH], AGENTS);
      const startMs = test.nowMs;
      const send = (load: number, tsMs: number) => {
        test.report("a", { users: 1 }, tsMs);
        test.restart();
        test.report("a", { load }, tsMs);
        test.report("a", { load: 0 }, tsMs);
      };
      send(0.1, startMs);
      test.nowMs += 2_000;
      send(0.95, test.nowMs);
      test.report("a", { users: 1 }, test.nowMs + 3_000);
      test.report("a", { load: 0.2 }, test.nowMs + 1_000);
      expect(test.transitions.slice(1)).toEqual([
        `a high fired ${startMs + 2_000} 0.95`,
        `a rising fired ${startMs + 2_000} ${(0.95 - 0.1) / 2}`,
        `a high resolved ${startMs + 5_000} 0.2`,
        `a rising resolved ${startMs + 5_000} ${(0.2 - 0.1) / 3}`,
      ]);
    }));

  it("notices that an agent does not report any more, also after a restart, and in the time of the agent's clock", () =>
    withEngine((test) => {
      test.watch([RULES[2] ?? HIGH], AGENTS);
      const slowMs = test.nowMs - 600_000;
      test.report("a", { load: 0.1 }, slowMs);
      test.restart();
      test.nowMs += 3_900;
      test.tick();
      expect(test.transitions).toHaveLength(1);
      test.nowMs += 1_200;
      test.tick();
      test.tick();
      expect(test.transitions.slice(1)).toEqual([`a silent fired ${slowMs + 4_000} 4`]);
    }));

  it("reports one event for each change of presence", () =>
    withEngine((test) => {
      test.watch([], AGENTS);
      const startMs = test.nowMs;
      test.report("a", { load: 1 });
      test.nowMs += 1_000;
      test.report("a", { load: 1 });
      test.restart();
      for (let i = 0; i < 15; i++) {
        test.nowMs += 1_000;
        test.tick();
      }
      test.restart();
      test.tick();
      test.report("a", { load: 1 });
      test.report("a", { load: 1 });
      expect(test.transitions).toEqual([
        `a online ${startMs}`,
        `a offline ${startMs + 11_000}`,
        `a online ${startMs + 16_000}`,
      ]);
    }));

  it("evaluates the samples of an agent that it did not know yet when it gets to know the agent", () =>
    withEngine((test) => {
      test.watch([HIGH], []);
      test.report("a", { load: 0.95 });
      expect([test.engine.hasUnknown, test.engine.unknown()]).toEqual([true, ["a"]]);
      test.watch([HIGH], AGENTS);
      expect(test.transitions.at(-1)).toBe(`a high fired ${test.nowMs} 0.95`);
      expect(test.engine.hasUnknown).toBe(false);
    }));

  it("counts absence from the last report that the telemetry store has", () =>
    withEngine((test) => {
      test.watch([RULES[2] ?? HIGH], AGENTS);
      expect(test.engine.unseen()).toEqual(["a", "b"]);
      const last = { tsMs: test.nowMs - 10_000, receivedMs: test.nowMs - 10_000 };
      test.engine.seed("a", last);
      test.engine.seed("b", undefined);
      expect(test.engine.unseen()).toEqual([]);
      test.tick();
      expect(test.transitions).toEqual([`a silent fired ${last.tsMs + 4_000} 4`]);
    }));

  it("ends the alerts of rules that do not watch the agent any more", () =>
    withEngine((test) => {
      const only = ruleOf("only", { selector: "site=x", condition: { metric: "load", op: ">", value: 0.5 } });
      const group = ruleOf("group", { condition: only.spec.condition, group: { by: "site", percent: 1 } });
      test.watch([HIGH, only, group], AGENTS);
      test.report("a", { load: 1 });
      const endings = () => test.transitions.filter((text) => text.includes("resolved"));
      test.watch([HIGH, only, group], [agentOf("a", { site: "y" }), agentOf("b", { site: "x" })]);
      expect(endings()).toEqual([`a group resolved ${test.nowMs} x`, `a only resolved ${test.nowMs} null`]);
      test.watch([{ ...HIGH, name: "another name" }], AGENTS);
      expect(endings()).toHaveLength(2);
      test.watch([], AGENTS);
      expect(endings().slice(2)).toEqual([`a high resolved ${test.nowMs} null`]);
      expect(test.events.at(-1)).toMatchObject({ rule: { name: "another name" }, reason: "not_watched" });
    }));

  it("starts anew with a changed condition", () =>
    withEngine((test) => {
      test.watch([HIGH], AGENTS);
      test.report("a", { load: 1 });
      test.watch([ruleOf("high", { condition: { metric: "load", op: ">", value: 0.95 } })], AGENTS);
      expect(test.transitions.at(-1)).toBe(`a high resolved ${test.nowMs} null`);
      test.nowMs += 1_000;
      test.report("a", { load: 1 });
      expect(test.transitions.at(-1)).toBe(`a high fired ${test.nowMs} 1`);
    }));

  it("keeps nothing of a transaction that failed", () =>
    withEngine((test) => {
      test.watch([HIGH], AGENTS);
      const sample = { apId: "a", tsMs: test.nowMs, receivedMs: test.nowMs, metrics: { load: 1 }, texts: {} };
      test.append([sample], true);
      expect([test.transitions, test.store.outgoingCount]).toEqual([[], 0]);
      test.append([sample]);
      expect(test.transitions).toHaveLength(2);
    }));
});

type Action =
  | { do: "report"; agent: 0 | 1; load?: number; users?: number; lateMs: number; isLong: boolean }
  | { do: "wait"; ms: number }
  | { do: "tick" | "checkpoint" | "kill" | "fail" }
  | { do: "flush"; isRewritten: boolean };

const actions = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record(
        {
          do: fc.constant("report" as const),
          agent: fc.constantFrom(0 as const, 1 as const),
          load: fc.constantFrom(0.1, 0.6, 0.95),
          users: fc.constantFrom(0, 2, 5),
          lateMs: fc.constantFrom(0, 0, 0, 300, 2_500),
          isLong: fc.constantFrom(false, false, false, true),
        },
        { requiredKeys: ["do", "agent", "lateMs", "isLong"] },
      ),
    },
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(100, 1_000, 1_500, 4_500, 6_000) }),
    },
    { weight: 4, arbitrary: fc.constant({ do: "tick" as const }) },
    { weight: 1, arbitrary: fc.constant({ do: "checkpoint" as const }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("flush" as const), isRewritten: fc.boolean() }) },
    { weight: 4, arbitrary: fc.constantFrom({ do: "kill" as const }, { do: "fail" as const }) },
  ),
  { maxLength: 60 },
);

/** Runs the actions. Without disturbances, the shard is never killed and its storage never fails. */
function run(test: EngineTest, list: readonly Action[], isDisturbed: boolean): void {
  test.watch(RULES, AGENTS);
  let fails = false;
  for (const action of list) {
    if (action.do === "wait") test.nowMs += action.ms;
    else if (action.do === "tick") test.tick();
    else if (action.do === "report") {
      const metrics: Record<string, number> = {};
      if (action.load !== undefined) metrics.load = action.load;
      if (action.users !== undefined) metrics.users = action.users;
      if (action.isLong) for (let i = 0; i < 100; i++) metrics[`m${i}`] = i;
      const apId = AGENTS[action.agent]?.apId ?? "";
      const sample = { apId, tsMs: test.nowMs - action.lateMs, receivedMs: test.nowMs, metrics, texts: {} };
      // The agent sends again what was not acknowledged.
      if (fails) test.append([sample], true);
      fails = false;
      test.append([sample]);
    } else if (!isDisturbed) continue;
    else if (action.do === "kill") test.restart();
    else if (action.do === "fail") fails = true;
    else if (action.do === "checkpoint") test.checkpoint();
    else if (action.do === "flush") test.flush(action.isRewritten);
  }
}

/** Returns the changes of alerts, as `<rule> fired <seconds after the start>`. */
const changesSince = (test: EngineTest, startMs: number): string[] =>
  test.events.flatMap((event) => {
    if (event.kind !== "alert") return [];
    return [`${event.rule.id} ${event.isFiring ? "fired" : "resolved"} ${(event.atMs - startMs) / 1_000}`];
  });

/** Returns the same for the evaluator alone. Its times are those of the engine: which points a rate keeps depends on them. */
const changesOf = (rules: readonly EnabledRule[], reports: readonly Report[]): string[] =>
  rules.flatMap(({ id, spec }) => {
    const samples = reports.map(({ atS, metrics }) => ({ atS: START_MS / 1_000 + atS, metrics }));
    const transitions = transitionsOf(compileRule(spec), samples, START_MS / 1_000 + END_S, () => undefined);
    return transitions.map(({ type, atMs }) => `${id} ${type} ${(atMs - START_MS) / 1_000}`);
  });

describe("live evaluation", () => {
  it("has the same transitions if each metric of a report arrives in a request of its own", async () => {
    const rules = fc.array(anyRule, { maxLength: 5 }).map((list) =>
      list.flatMap((rule, i) => {
        // Between two requests the report is there and some of its values are not: durations, absence or another metric may decide then.
        if (rule.metrics.length > 1 || rule.needs.absencesMs.length > 0) return [];
        const { clear, ...spec } = rule.spec;
        return [ruleOf(`r${i}`, { ...spec, for_s: 0, clear: { ...clear, for_s: 0 } })];
      }),
    );
    await fc.assert(
      fc.asyncProperty(rules, anyReports, async (list, reports) => {
        const outcome = (split: (metrics: Record<string, number>) => Record<string, number>[]) =>
          withEngine((test) => {
            const startMs = test.nowMs;
            test.watch(list, AGENTS);
            for (const { atS, metrics } of reports) {
              test.nowMs = startMs + atS * 1_000;
              for (const part of split(metrics)) test.report("a", part);
            }
            test.nowMs = startMs + END_S * 1_000;
            test.tick();
            return changesSince(test, startMs).toSorted();
          });
        const inParts = await outcome((metrics) => [
          {},
          ...Object.entries(metrics).map(([key, value]) => ({ [key]: value })),
        ]);
        expect(inParts).toEqual(await outcome((metrics) => [metrics]));
      }),
      { numRuns: 100 },
    );
  });

  it("has the transitions that the evaluator gives for the same samples", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyRule, { maxLength: 5 }),
        anyReports,
        fc.boolean(),
        async (list, reports, hasTicks) => {
          const rules = list.map(({ spec }, i) => ruleOf(`r${i}`, spec));
          const live = await withEngine((test) => {
            const startMs = test.nowMs;
            test.watch(rules, AGENTS);
            for (const { atS, metrics } of reports) {
              test.nowMs = startMs + atS * 1_000;
              if (hasTicks) test.tick();
              test.report("a", metrics);
            }
            test.nowMs = startMs + END_S * 1_000;
            test.tick();
            return changesSince(test, startMs);
          });
          expect(live.toSorted()).toEqual(changesOf(rules, reports).toSorted());
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("a rule that is created later", () => {
  const withoutAbsence = anyRule.filter(({ needs }) => needs.absencesMs.length === 0);

  it("has the transitions that the evaluator gives for the samples since then", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(withoutAbsence, { minLength: 1, maxLength: 4 }),
        anyReports,
        fc.nat(20),
        async (list, reports, before) => {
          // The same rules twice: the later ones find rates that the earlier ones have begun.
          const early = list.map(({ spec }, i) => ruleOf(`early${i}`, spec));
          const late = list.map(({ spec }, i) => ruleOf(`late${i}`, spec));
          const live = await withEngine((test) => {
            const startMs = test.nowMs;
            test.watch(early, AGENTS);
            for (const [i, { atS, metrics }] of reports.entries()) {
              if (i === before) test.watch([...early, ...late], AGENTS);
              test.nowMs = startMs + atS * 1_000;
              test.report("a", metrics);
              if (i % 7 === 6) test.restart();
            }
            test.nowMs = startMs + END_S * 1_000;
            test.tick();
            return changesSince(test, startMs);
          });
          expect(live.toSorted()).toEqual(
            [...changesOf(early, reports), ...changesOf(late, reports.slice(before))].toSorted(),
          );
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("a shard that is killed between appends", () => {
  it("has the same transitions and the same state as one that runs without interruption", async () => {
    await fc.assert(
      fc.asyncProperty(actions, async (list) => {
        const outcome = (isDisturbed: boolean) =>
          withEngine((test) => {
            run(test, list, isDisturbed);
            test.restart();
            // The states that are left decide what happens now.
            run(test, [{ do: "wait", ms: 60_000 }, { do: "tick" }], false);
            return test.transitions;
          });
        expect(await outcome(true)).toEqual(await outcome(false));
      }),
      { numRuns: 150 },
    );
  });
});
