import { describe, expect, it } from "vitest";
import { encodeFamilies, type MetricFamily, textFormatFor } from "../../../src/protocols/prometheus/text-format.ts";

const FAMILIES: MetricFamily[] = [
  {
    name: "access_point_info",
    help: "Labels",
    type: "gauge",
    series: [
      {
        labels: [
          ["__name__", "access_point_info"],
          ["instance", "ap-1"],
          ["site", 'a\\b"c\nd'],
        ],
        value: 1,
      },
    ],
  },
  {
    name: "load",
    help: 'The "load"\nwith \\',
    type: "unknown",
    series: [
      { labels: [["__name__", "load"]], value: 0.1 },
      {
        labels: [
          ["__name__", "load"],
          ["instance", "ap-2"],
        ],
        value: -5e-324,
      },
    ],
  },
];

describe("the text format", () => {
  it("has the help, the type and the series of each name, and an end", () => {
    expect([...encodeFamilies(FAMILIES, "openmetrics")].join("")).toBe(
      [
        "# HELP access_point_info Labels",
        "# TYPE access_point_info gauge",
        'access_point_info{instance="ap-1",site="a\\\\b\\"c\\nd"} 1',
        '# HELP load The \\"load\\"\\nwith \\\\',
        "# TYPE load unknown",
        "load 0.1",
        'load{instance="ap-2"} -5e-324',
        "# EOF",
        "",
      ].join("\n"),
    );
  });

  it("of older readers has another name for an unknown type, and no escaped quotes in the help", () => {
    const text = [...encodeFamilies(FAMILIES, "text")].join("");
    expect(text).toContain("# TYPE load untyped\n");
    expect(text).toContain('# HELP load The "load"\\nwith \\\\\n');
  });

  it.each([
    [undefined, "text"],
    ["*/*", "text"],
    ["text/plain;version=0.0.4;q=0.3", "text"],
    ["application/openmetrics-text", "openmetrics"],
    [
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
      "openmetrics",
    ],
    ["text/plain, application/OpenMetrics-text; version=0.0.1", "openmetrics"],
    ["x-application/openmetrics-text", "text"],
  ])("for %j is %s", (accept, format) => {
    expect(textFormatFor(accept)).toBe(format);
  });
});
