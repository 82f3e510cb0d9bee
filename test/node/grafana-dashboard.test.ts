import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { TECHNOLOGIES } from "../../src/emulator/models/access-point.ts";
import { createSite, stepSite } from "../../src/emulator/models/site.ts";
import { ROOT } from "../../src/programs/shared/system.ts";
import { escapePrometheusName } from "../../src/protocols/metric-name.ts";

const Dashboard = z.object({
  uid: z.string(),
  panels: z.array(
    z.object({
      id: z.int(),
      title: z.string().min(1),
      datasource: z.object({ uid: z.string().regex(/^\$\{datasource\}$/) }),
      gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
      targets: z.array(z.object({ refId: z.string(), expr: z.string() })).min(1),
    }),
  ),
  templating: z.object({ list: z.array(z.object({ name: z.string(), query: z.unknown() })) }),
});
const dashboard = Dashboard.parse(JSON.parse(readFileSync(join(ROOT, "docs/grafana/controller.json"), "utf8")));

/** Words of PromQL in the expressions that are no metrics. */
const PROMQL = new Set([
  "count",
  "sum",
  "avg",
  "by",
  "on",
  "and",
  "or",
  "quantile",
  "rate",
  "topk",
  "vector",
  "group_left",
]);

/** Returns the names of metrics in an expression: words outside braces, brackets and lists of labels. */
const metricsIn = (expression: string): string[] =>
  (
    expression
      .replace(/\{[^}]*\}|\[[^\]]*\]/g, "")
      .replace(/\b(?:by|on|group_left)\s*\([^)]*\)/g, "")
      .match(/[A-Za-z_:][\w:]*/g) ?? []
  ).filter((word) => !PROMQL.has(word));

describe("the Grafana dashboard", () => {
  it("has panels with different numbers that do not overlap", () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      expect(x + w).toBeLessThanOrEqual(24);
      return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
    });
    expect(new Set(cells).size).toBe(cells.length);
  });

  it("uses only metrics that access points report, under their escaped names", () => {
    const accessPoints = TECHNOLOGIES.map((technology) => ({ apId: technology, technology, numDevices: 5 }));
    const { samples } = stepSite(createSite({ longitudeDeg: -2, accessPoints }, 1), 1_800_000_000_000);
    const used = dashboard.panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => metricsIn(expr)));
    expect(used.length).toBeGreaterThan(10);
    const known = new Set([
      "access_point_info",
      ...samples.flatMap(({ sample }) => Object.keys(sample)).map(escapePrometheusName),
    ]);
    expect(used.filter((name) => !known.has(name))).toEqual([]);
  });

  it("reads its variables from queries, because remote read cannot list the values of labels", () => {
    for (const { name, query } of dashboard.templating.list) {
      if (name !== "datasource") expect(JSON.stringify(query)).toContain("query_result(");
    }
  });
});
