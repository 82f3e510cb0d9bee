import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextDueMs, type RuleState, type Step, step } from "../../../src/rules/evaluator.ts";
import { takeQuietReport } from "../../../src/rules/quiet-report.ts";
import { anyReports, anyRule, baselineAt } from "../../support/rules.ts";

describe("a quiet report", () => {
  it("leaves the state that a step gives, without transitions", async () => {
    let taken = 0;
    await fc.assert(
      fc.property(anyRule, anyReports, (rule, reports) => {
        let stepped: Step | undefined;
        let state: RuleState | undefined;
        for (const { atS, metrics } of reports) {
          const observation = { atMs: atS * 1000, metrics, baseline: baselineAt };
          stepped = step(rule, stepped?.state, observation);
          const before = structuredClone(state);
          if (state !== undefined && takeQuietReport(rule, state, observation.atMs, metrics)) {
            taken++;
            expect([state, nextDueMs(rule, state)]).toEqual([stepped.state, stepped.nextDueMs]);
            expect(stepped.transitions).toEqual([]);
          } else {
            expect(state).toEqual(before);
            state = step(rule, state, observation).state;
          }
        }
        expect(state).toEqual(stepped?.state);
      }),
      { numRuns: 500 },
    );
    expect(taken).toBeGreaterThan(50);
  });
});
