import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  escapePrometheusLabel,
  escapePrometheusName,
  formatInfluxName,
  formatMetricName,
  parseInfluxName,
  parseMetricName,
  unescapePrometheusName,
} from "../../../src/protocols/metric-name.ts";

/** Texts in which the characters of the syntax are frequent. */
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: fc.constantFrom(...'{}"\\,=n\n._U:09aé\u{1f4e1}') }),
);
const labels = fc.dictionary(fc.oneof(text, fc.constantFrom("__proto__", "constructor")), text);

describe("the name of a stored metric", () => {
  it("is parsed to the name and the labels from which it was formatted", () => {
    fc.assert(
      fc.property(text, labels, (name, labels) => {
        const parsed = parseMetricName(formatMetricName(name, labels));
        expect(parsed.name).toBe(name);
        expect(Object.entries(parsed.labels).toSorted()).toEqual(Object.entries(labels).toSorted());
      }),
    );
  });

  it("does not depend on the order of the labels", () => {
    expect(formatMetricName("up", { b: "2", a: "1" })).toBe('up{a="1",b="2"}');
    expect(formatMetricName("up", { a: "1", b: "2" })).toBe('up{a="1",b="2"}');
  });

  it("is the name alone without labels", () => {
    expect(formatMetricName("wifi.clients", {})).toBe("wifi.clients");
  });

  it("has backslashes before the characters of the syntax", () => {
    expect(formatMetricName("a{b\\c", { 'k="': 'x"y\\z\n' })).toBe('a\\{b\\\\c{k\\="="x\\"y\\\\z\\n"}');
  });

  it("is accepted as it is if an agent reported a text of another form", () => {
    for (const name of ["a{", "a{}", 'a{b="c"', 'a{b="c"}d', 'a{b="1",b="2"}', "a{b=c}", "end\\", 'a{b="c",}']) {
      expect(parseMetricName(name)).toEqual({ name, labels: {} });
    }
  });

  it("is parsed without an error for every text", () => {
    fc.assert(fc.property(text, (stored) => void parseMetricName(stored)));
  });
});

describe("the name of an InfluxDB field", () => {
  it("is parsed to its measurement and field", () => {
    fc.assert(
      fc.property(text, text, (measurement, field) => {
        expect(parseInfluxName(formatInfluxName(measurement, field))).toEqual({ measurement, field });
      }),
    );
  });

  it("is not parsed without a dot", () => {
    expect(parseInfluxName("up")).toBeUndefined();
    expect(parseInfluxName("a\\.b")).toBeUndefined();
  });
});

describe("a name for Prometheus", () => {
  it("is valid, and unescaped to the original", () => {
    fc.assert(
      fc.property(text, (name) => {
        expect(escapePrometheusName(name)).toMatch(/^[a-zA-Z_:][a-zA-Z0-9_:]*$/);
        expect(escapePrometheusLabel(name)).toMatch(/^[a-zA-Z_][a-zA-Z0-9_]*$/);
        expect(unescapePrometheusName(escapePrometheusName(name))).toBe(name);
        expect(unescapePrometheusName(escapePrometheusLabel(name))).toBe(name);
      }),
    );
  });

  it("stays if it is valid", () => {
    expect(escapePrometheusName("node:cpu_seconds")).toBe("node:cpu_seconds");
  });

  it("follows the escaping scheme of Prometheus", () => {
    expect(escapePrometheusName("mysystem.prod.west.cpu.load")).toBe("U__mysystem_2e_prod_2e_west_2e_cpu_2e_load");
    expect(escapePrometheusName("http.status:sum_1")).toBe("U__http_2e_status:sum__1");
    expect(escapePrometheusName("0a")).toBe("U___30_a");
    expect(escapePrometheusName("label with 😱")).toBe("U__label_20_with_20__1f631_");
  });

  it("is unescaped to itself if it is not escaped correctly", () => {
    for (const name of ["up", "U__a_b", "U__a_", "U__a_zz_", "U__a_d800_", "U__a_110000_"]) {
      expect(unescapePrometheusName(name)).toBe(name);
    }
  });
});
