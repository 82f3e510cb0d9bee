import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type RuleState, step, type Transition } from "../../../src/rules/evaluator.ts";
import {
  anyReports,
  anyRule,
  baselineAt,
  END_S,
  type Report,
  transitionsOf,
  transitionsWithTicks,
} from "../../support/rules.ts";

const RUNS = { numRuns: 500 };

describe("the evaluator", () => {
  it("gives the same transitions with and without ticks at their due times", async () => {
    await fc.assert(
      fc.property(anyRule, anyReports, (rule, reports) => {
        expect(transitionsWithTicks(rule, reports, END_S)).toEqual(transitionsOf(rule, reports, END_S));
      }),
      RUNS,
    );
  });

  it("gives the same transitions if it restarts after every observation", async () => {
    await fc.assert(
      fc.property(anyRule, anyReports, (rule, reports) => {
        let stored: string | undefined;
        const all: Transition[] = [];
        for (const { atS, metrics } of [...reports, { atS: END_S, metrics: undefined }]) {
          const state = stored === undefined ? undefined : (JSON.parse(stored) as RuleState);
          const result = step(rule, state, { atMs: atS * 1000, metrics, baseline: baselineAt });
          stored = JSON.stringify(result.state);
          all.push(...result.transitions);
        }
        expect(all).toEqual(transitionsOf(rule, reports, END_S));
      }),
      RUNS,
    );
  });

  it("gives the same transitions if reports are repeated or arrive late as well", async () => {
    const indexes = fc.array(fc.tuple(fc.nat(), fc.nat(), fc.boolean()), { maxLength: 20 });
    await fc.assert(
      fc.property(anyRule, anyReports, indexes, (rule, reports, extra) => {
        const disturbed: Report[] = [...reports];
        for (const [position, origin, isOther] of reports.length === 0 ? [] : extra) {
          const at = position % disturbed.length;
          const source = disturbed[origin % (at + 1)];
          if (source === undefined) continue;
          disturbed.splice(at + 1, 0, isOther ? { ...source, metrics: { a: 3, b: 0 } } : source);
        }
        expect(transitionsOf(rule, disturbed, END_S)).toEqual(transitionsOf(rule, reports, END_S));
      }),
      RUNS,
    );
  });

  it("fires and resolves in turn, in the order of time", async () => {
    await fc.assert(
      fc.property(anyRule, anyReports, (rule, reports) => {
        const all = transitionsOf(rule, reports, END_S);
        expect(all.map(({ type }) => type)).toEqual(all.map((_, i) => (i % 2 === 0 ? "fired" : "resolved")));
        expect(all.map(({ atMs }) => atMs)).toEqual(all.map(({ atMs }) => atMs).toSorted((a, b) => a - b));
      }),
      RUNS,
    );
  });

  it("changes nothing with a tick before the next due time", async () => {
    await fc.assert(
      fc.property(
        anyRule,
        anyReports,
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (rule, reports, part) => {
          let state: RuleState | undefined;
          for (const { atS, metrics } of reports) {
            const result = step(rule, state, { atMs: atS * 1000, metrics, baseline: baselineAt });
            const waitMs = Math.min(result.nextDueMs - atS * 1000, 3_600_000);
            const tick = step(rule, result.state, {
              atMs: atS * 1000 + Math.floor(waitMs * part),
              baseline: baselineAt,
            });
            expect(tick).toEqual({ state: result.state, transitions: [], nextDueMs: result.nextDueMs });
            state = result.state;
          }
        },
      ),
      RUNS,
    );
  });
});
