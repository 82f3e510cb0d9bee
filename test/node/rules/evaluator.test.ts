import { describe, expect, it } from "vitest";
import { type RuleState, step, type Transition } from "../../../src/rules/evaluator.ts";
import { reportsOf, ruleOf, run, transitionsOf } from "../../support/rules.ts";

const HIGH_LOAD = { condition: { metric: "load", op: ">", value: 0.9 } };

describe("a rule with tolerance in both directions", () => {
  const tolerant = ruleOf({
    ...HIGH_LOAD,
    for_s: 30,
    clear: { condition: { metric: "load", op: "<", value: 0.7 }, for_s: 20 },
  });

  it("does not flap if the value swings around the threshold", () => {
    const swinging = reportsOf("load", [0.95, 0.85, 0.95, 0.85, 0.95, 0.85]);
    expect(run(ruleOf(HIGH_LOAD), swinging)).toEqual([
      "fired 0",
      "resolved 10",
      "fired 20",
      "resolved 30",
      "fired 40",
      "resolved 50",
    ]);
    expect(run(tolerant, swinging)).toEqual([]);
  });

  it("stays firing while the value is between the two thresholds", () => {
    const values = [0.95, 0.95, 0.95, 0.95, 0.85, 0.75, 0.85, 0.65, 0.75, 0.65, 0.65, 0.65];
    expect(run(tolerant, reportsOf("load", values))).toEqual(["fired 30", "resolved 110"]);
  });

  it("does not end while its condition holds, even if the clear condition holds too", () => {
    const overlapping = ruleOf({ ...HIGH_LOAD, clear: { condition: { metric: "load", op: ">", value: 0 } } });
    expect(run(overlapping, reportsOf("load", [1, 1, 1, 0.5]))).toEqual(["fired 0", "resolved 30"]);
  });
});

describe("an OR of three conditions", () => {
  const rule = ruleOf({
    condition: {
      any: [
        { metric: "load", op: ">", value: 0.9 },
        { metric: "users", op: ">=", value: 100 },
        {
          all: [
            { metric: "errors", op: ">", value: 5 },
            { metric: "load", op: ">", value: 0.5 },
          ],
        },
      ],
    },
    for_s: 20,
  });

  it("is one alert while at least one of them holds, whichever it is", () => {
    const reports = [
      { atS: 0, metrics: { load: 0.95, users: 1, errors: 0 } },
      { atS: 10, metrics: { load: 0.6, users: 120, errors: 0 } },
      { atS: 20, metrics: { load: 0.6, users: 1, errors: 9 } },
      { atS: 30, metrics: { load: 0.4, users: 1, errors: 9 } },
    ];
    expect(transitionsOf(rule, reports)).toEqual([
      { type: "fired", atMs: 20_000, value: 9 },
      { type: "resolved", atMs: 30_000, value: 0.4 },
    ]);
  });

  it("starts its duration anew if none of them held in between", () => {
    const load = reportsOf("load", [0.95, 0.1, 0.95, 0.95]);
    expect(run(rule, load)).toEqual([]);
    expect(run(rule, load, 39)).toEqual([]);
    expect(run(rule, load, 40)).toEqual(["fired 40"]);
  });
});

describe("the absence of reports", () => {
  const offline = ruleOf({ condition: { no_report_s: 60 } });

  it("begins the given time after the last report, and ends with the next one", () => {
    const reports = [...reportsOf("load", [1, 1, 1]), { atS: 200, metrics: {} }];
    expect(run(offline, reports, 250)).toEqual(["fired 80", "resolved 200"]);
    expect(run(offline, reports, 260)).toEqual(["fired 80", "resolved 200", "fired 260"]);
  });

  it("does not begin for an agent that reports exactly that often", () => {
    expect(run(offline, reportsOf("load", [1, 1, 1, 1], 60))).toEqual([]);
  });

  it("does not begin for an agent that has never reported", () => {
    expect(run(offline, [], 1_000_000)).toEqual([]);
  });

  it("lasts for the duration of the rule before it fires, and after it before it resolves", () => {
    const rule = ruleOf({ condition: { no_report_s: 60 }, for_s: 30, clear: { for_s: 15 } });
    const reports = [0, 85, 200, 210, 220].map((atS) => ({ atS, metrics: {} }));
    expect(run(rule, reports)).toEqual(["fired 175", "resolved 215"]);
  });

  it("leaves the last values in place", () => {
    const rule = ruleOf({ condition: { all: [HIGH_LOAD.condition, { no_report_s: 60 }] } });
    expect(run(rule, reportsOf("load", [0.1, 1]), 1_000)).toEqual(["fired 70"]);
    expect(run(ruleOf({ ...HIGH_LOAD, for_s: 300 }), reportsOf("load", [1]), 1_000)).toEqual(["fired 300"]);
  });
});

describe("late and repeated samples", () => {
  it("change nothing", () => {
    const rule = ruleOf({ ...HIGH_LOAD, for_s: 20, clear: { for_s: 10 } });
    const inOrder = reportsOf("load", [1, 1, 1, 0.1, 0.1, 1]);
    const [first, second, third, ...rest] = inOrder;
    if (first === undefined || second === undefined || third === undefined) throw new Error("too few reports");
    const late = { atS: 15, metrics: { load: 0 } };
    const shuffled = [first, first, second, third, late, second, third, ...rest, first, late];
    expect(run(rule, inOrder)).toEqual(["fired 20", "resolved 40"]);
    expect(run(rule, shuffled)).toEqual(run(rule, inOrder));
  });

  it("that are newer than the last report count from the last tick on", () => {
    const rule = ruleOf({ condition: { no_report_s: 60 } });
    const { state } = step(rule, undefined, { atMs: 0, metrics: {} });
    const tick = step(rule, state, { atMs: 65_000 });
    expect(tick).toMatchObject({ transitions: [{ type: "fired", atMs: 60_000 }], state: { atMs: 60_000 } });
    expect(step(rule, tick.state, { atMs: 58_000, metrics: {} })).toMatchObject({
      transitions: [{ type: "resolved", atMs: 60_000, value: 2 }],
      nextDueMs: 118_000,
    });
  });
});

describe("a part of a report", () => {
  it("counts although the report is not newer than the last one", () => {
    const rule = ruleOf({ condition: { any: [HIGH_LOAD.condition, { no_report_s: 60 }] } });
    const { state } = step(rule, undefined, { atMs: 20_000, metrics: { users: 1 } });
    const part = { atMs: 10_000, metrics: { load: 1 } };
    expect(step(rule, state, part).transitions).toEqual([]);
    expect(step(rule, state, { ...part, isPart: true })).toMatchObject({
      transitions: [{ type: "fired", atMs: 20_000, value: 1 }],
      state: { reportedMs: 20_000 },
    });
  });
});

describe("durations", () => {
  it("end between reports if the last value holds", () => {
    const rule = ruleOf({ ...HIGH_LOAD, for_s: 15, clear: { for_s: 25 } });
    expect(run(rule, reportsOf("load", [1, 1, 0.1, 0.1, 0.1]), 100)).toEqual(["fired 15", "resolved 45"]);
  });

  it("are not reached if the report at their very end says otherwise", () => {
    expect(run(ruleOf({ ...HIGH_LOAD, for_s: 10 }), reportsOf("load", [1, 0.1, 1, 0.1]))).toEqual([]);
  });

  it("may be fractions of a second", () => {
    const rule = ruleOf({ ...HIGH_LOAD, for_s: 0.1 });
    expect(transitionsOf(rule, [{ atS: 1_700_000_000.3, metrics: { load: 1 } }], 1_700_000_001)).toEqual([
      { type: "fired", atMs: 1_700_000_000_400, value: 1 },
    ]);
  });
});

describe("a metric that a report does not have", () => {
  it("keeps its last value", () => {
    const reports = [
      { atS: 0, metrics: { load: 1 } },
      { atS: 10, metrics: { users: 3 } },
      { atS: 20, metrics: { load: 0.1 } },
    ];
    expect(run(ruleOf({ ...HIGH_LOAD, for_s: 15 }), reports)).toEqual(["fired 15", "resolved 20"]);
  });

  it("fulfils no condition if it was never reported, whatever its name", () => {
    const never = (name: string) => ({ condition: { metric: name, op: "<", value: 5 } });
    for (const name of ["load", "constructor", "__proto__"]) {
      expect(run(ruleOf(never(name)), [{ atS: 0, metrics: { users: 1 } }], 100)).toEqual([]);
    }
  });
});

describe("a rate of change", () => {
  const falling = ruleOf({ condition: { rate_of: "users", over_s: 60, op: "<", value: -0.5 } });

  it("is the change per second since the newest value that is old enough", () => {
    const users = reportsOf("users", [100, 100, 100, 100, 100, 100, 100, 80, 60, 40, 40, 40, 40, 40, 40, 40]);
    expect(transitionsOf(falling, users)).toEqual([
      { type: "fired", atMs: 80_000, value: -40 / 60 },
      { type: "resolved", atMs: 140_000, value: -20 / 60 },
    ]);
  });

  it("is unknown until a value is old enough", () => {
    expect(run(falling, reportsOf("users", [1000, 800, 600, 400, 200, 0]))).toEqual([]);
    expect(run(falling, reportsOf("users", [1000, 800, 600, 400, 200, 0, 0]))).toEqual(["fired 60"]);
  });

  it("keeps a bounded number of values, however often the agent reports", () => {
    const rule = ruleOf({ condition: { rate_of: "users", over_s: 3_600, op: ">", value: 9.9 } });
    let state: RuleState | undefined;
    const fired: Transition[] = [];
    for (let i = 0; i <= 80_000; i++) {
      const result = step(rule, state, { atMs: i * 100, metrics: { users: i } });
      state = result.state;
      fired.push(...result.transitions);
    }
    expect(fired).toEqual([{ type: "fired", atMs: 3_600_000, value: 10 }]);
    expect(JSON.stringify(state).length).toBeLessThan(2_000);
    expect(state?.rates?.[0]?.perSecond).toBe(10);
  });
});

describe("a comparison with earlier days", () => {
  const HOUR_S = 3_600;
  const fewUsers = ruleOf({
    condition: { metric: "users", op: "<", baseline: { days: 7, factor: 0.5 } },
  });

  it("holds if the value is below the share of the mean at the same hour", () => {
    // The mean is the hour modulo 3.
    const reports = [0, 1, 2, 3].map((hour) => ({ atS: hour * HOUR_S, metrics: { users: 0.75 } }));
    expect(run(fewUsers, reports)).toEqual(["fired 7200", "resolved 10800"]);
  });

  it("does not hold if the mean is not known", () => {
    expect(run(fewUsers, [{ atS: 4 * HOUR_S, metrics: { users: -100 } }])).toEqual([]);
  });
});
