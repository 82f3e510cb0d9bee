import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatMetricName } from "../../src/protocols/metric-name.ts";
import { splitMetricNames } from "../../src/schemas/metric-list.ts";

describe("a list of metric names", () => {
  it("is split at commas that are not in labels", () => {
    expect(splitMetricNames('load,up{job="node",path="a,}b"},users')).toEqual([
      "load",
      'up{job="node",path="a,}b"}',
      "users",
    ]);
    expect(splitMetricNames(",a,,b,")).toEqual(["a", "b"]);
    expect(splitMetricNames("")).toEqual([]);
  });

  it("is split at all commas after a brace that begins no labels", () => {
    expect(splitMetricNames("a{,b")).toEqual(["a{", "b"]);
  });

  it("gives the names from which it was joined", () => {
    const text = fc.string({ unit: fc.constantFrom(...'ab{}"\\=.,') });
    const name = fc.string({ unit: fc.constantFrom(...'ab{}"\\=.'), minLength: 1 });
    const key = fc.string({ unit: fc.constantFrom(..."ab_."), minLength: 1 });
    const metric = fc.tuple(name, fc.dictionary(key, text)).map(([name, labels]) => formatMetricName(name, labels));
    fc.assert(
      fc.property(fc.array(metric), (names) => {
        expect(splitMetricNames(names.join())).toEqual(names);
      }),
    );
  });
});
