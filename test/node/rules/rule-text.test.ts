import { describe, expect, it } from "vitest";
import { MAX_TEXT_LENGTH, renderText } from "../../../src/rules/rule-text.ts";
import type { Condition } from "../../../src/schemas/alerts/rule.ts";

const condition: Condition = { metric: "load", op: ">", value: 0.9 };
const labels = { site: "uk/bristol", technology: "WiFi" };
const render = (text: string, values: Partial<Parameters<typeof renderText>[1]> = {}) =>
  renderText({ text, condition }, { apId: "ap-1", value: 0.1 + 0.2, labels, ...values });

describe("the text of an alert", () => {
  it("has the agent, the value and labels in place of their names", () => {
    expect(render("{{ap_id}} ({{ technology }}) at {{site}}: {{value}}")).toBe("ap-1 (WiFi) at uk/bristol: 0.3");
    expect(render("{{group}}: {{value}} %", { apId: undefined, group: "uk/bristol", value: 30 })).toBe(
      "uk/bristol: 30 %",
    );
  });

  it("shows a question mark for what is not known", () => {
    expect(render("{{floor}} {{value}} {{constructor}}", { value: undefined })).toBe("? ? ?");
    expect(render("{{a b}} {{}} {value}")).toBe("{{a b}} {{}} {value}");
  });

  it("is not a template itself", () => {
    expect(render("{{site}}", { labels: { site: "{{value}}" } })).toBe("{{value}}");
  });

  it("describes the condition if the rule has no text", () => {
    expect(render("")).toBe("ap-1: load > 0.9 (0.3)");
    const nested: Condition = {
      any: [
        { all: [condition, { rate_of: "users", over_s: 60, op: "<", value: -1 }] },
        { no_report_s: 60 },
        { metric: "users", op: "<", baseline: { days: 7, factor: 0.5 } },
      ],
    };
    expect(renderText({ text: "", condition: nested }, { group: "a", labels })).toBe(
      "a: (load > 0.9 and change of users per second over 60 s < -1) or no report for 60 s or users < 0.5 × its mean at this hour of 7 days",
    );
  });

  it("is bounded, and is not cut within a character", () => {
    for (const offset of [0, 1]) {
      const text = render("{{site}}", { labels: { site: "a".repeat(offset) + "😀".repeat(MAX_TEXT_LENGTH) } });
      expect(text.length).toBeLessThanOrEqual(MAX_TEXT_LENGTH);
      expect(text.isWellFormed()).toBe(true);
      expect(text).toMatch(/😀…$/u);
    }
  });
});
