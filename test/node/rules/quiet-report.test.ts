import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextDueMs, type RuleState, step } from "../../../src/rules/evaluator.ts";
import { takeQuietReport } from "../../../src/rules/quiet-report.ts";
import { anyReports, anyRule, baselineAt } from "../../support/rules.ts";

describe("a quiet report", () => {
  it("leaves the state that a step gives, without transitions", async () => {
    await fc.assert(
      fc.property(anyRule, anyReports, (rule, reports) => {
        let state: RuleState | undefined;
        for (const { atS, metrics } of reports) {
          const atMs = atS * 1000;
          const expected = step(rule, state, { atMs, metrics, baseline: baselineAt });
          const before = structuredClone(state);
          if (state !== undefined && takeQuietReport(rule, state, atMs, metrics)) {
            expect([state, nextDueMs(rule, state)]).toEqual([expected.state, expected.nextDueMs]);
            expect(expected.transitions).toEqual([]);
          } else expect(state).toEqual(before);
          state = expected.state;
        }
      }),
      { numRuns: 500 },
    );
  });
});
