import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeOtlp, encodeOtlpError, encodeOtlpResponse, otlpEncoding } from "../../../src/protocols/otlp/otlp.ts";
import { MAX_POINTS } from "../../../src/protocols/point.ts";
import { ProtobufReader } from "../../../src/protocols/protobuf.ts";
import { encodeRequest, type Json } from "../../support/protocols/otlp-protobuf.ts";

const KEPT = ["service.name", "service.instance.id"];
const TIME = "1700000000123999999";
const TS_MS = 1_700_000_000_123;
const AT = { timeUnixNano: TIME };

const attribute = (key: string, value: Json) => ({ key, value });
const text = (key: string, stringValue: string) => attribute(key, { stringValue });

/** A request with one metric. */
const request = (
  metric: Json,
  attributes: Json[] = [text("service.name", "radio"), text("process.pid", "7")],
): Json => ({
  resourceMetrics: [{ resource: { attributes }, scopeMetrics: [{ scope: { name: "x" }, metrics: [metric] }] }],
});

/** Decodes a request in both encodings, which must agree. */
function decode(request: Json) {
  const json = decodeOtlp(new TextEncoder().encode(JSON.stringify(request)), "json", KEPT);
  const { points, rejected } = decodeOtlp(encodeRequest(request), "protobuf", KEPT);
  expect({ points: json.points, rejected: json.rejected }).toEqual({ points, rejected });
  return { points, rejected };
}

/** Decodes a request with one metric. Returns its values by name. */
const valuesOf = (metric: Json) =>
  Object.fromEntries(decode(request(metric)).points.map(({ name, value }) => [name, value]));

const malformed = expect.objectContaining({ code: "malformed" });

describe("an OTLP request", () => {
  it("gives the values of gauges and sums, with the attributes as labels", () => {
    const dataPoints = [
      { ...AT, asInt: "3", attributes: [text("band", "5 GHz"), attribute("radio", { intValue: "1" })] },
      {
        ...AT,
        asDouble: -0.5,
        attributes: [attribute("on", { boolValue: true }), attribute("x", { doubleValue: 1.5 })],
      },
    ];
    for (const kind of ["gauge", "sum"]) {
      expect(decode(request({ name: "wifi.clients", [kind]: { dataPoints } })).points).toEqual([
        {
          name: "wifi.clients",
          labels: { "service.name": "radio", band: "5 GHz", radio: "1" },
          tsMs: TS_MS,
          value: 3,
          origin: 1,
        },
        {
          name: "wifi.clients",
          labels: { "service.name": "radio", on: "true", x: "1.5" },
          tsMs: TS_MS,
          value: -0.5,
          origin: 2,
        },
      ]);
    }
  });

  it("has no time if the time is 0, and rounds down to milliseconds", () => {
    const { points } = decode(request({ name: "a", gauge: { dataPoints: [{ asInt: "1" }, { ...AT, asInt: "-1" }] } }));
    expect(points).toMatchObject([
      { tsMs: undefined, value: 1 },
      { tsMs: TS_MS, value: -1 },
    ]);
  });

  it("writes lists, maps and bytes of attributes as text", () => {
    const list = { arrayValue: { values: [{ stringValue: "a" }, { intValue: "2" }, { arrayValue: { values: [] } }] } };
    const map = { kvlistValue: { values: [text("k", "v")] } };
    const attributes = [
      attribute("list", list),
      attribute("map", map),
      attribute("bytes", { bytesValue: "AQI=" }),
      attribute("none", {}),
    ];
    const { points } = decode(request({ name: "a", gauge: { dataPoints: [{ ...AT, asInt: "1", attributes }] } }, []));
    expect(points[0]?.labels).toEqual({ list: '["a",2,[]]', map: '{"k":"v"}', bytes: "AQI=", none: "null" });
  });

  it("gives count, sum, minimum, maximum and quantiles of a histogram", () => {
    const point = {
      ...AT,
      count: "10",
      sum: 100,
      min: 1,
      max: 40,
      bucketCounts: ["0", "5", "5", "0"],
      explicitBounds: [0, 10, 20],
    };
    expect(valuesOf({ name: "delay", histogram: { dataPoints: [point] } })).toEqual({
      "delay.count": 10,
      "delay.sum": 100,
      "delay.min": 1,
      "delay.max": 40,
      "delay.p50": 10,
      "delay.p90": 18,
      "delay.p99": expect.closeTo(19.8),
    });
  });

  it("estimates quantiles in the outer buckets of a histogram from its minimum and maximum, or from its bounds", () => {
    const only = (bucketCounts: string[], more: { [key: string]: Json }) =>
      valuesOf({
        name: "d",
        histogram: { dataPoints: [{ ...AT, count: "4", bucketCounts, explicitBounds: [10, 20], ...more }] },
      });
    expect(only(["4", "0", "0"], {})).toMatchObject({ "d.p50": 5 });
    expect(only(["4", "0", "0"], { min: 8 })).toMatchObject({ "d.p50": 9 });
    expect(only(["0", "0", "4"], {})).toMatchObject({ "d.p50": 20 });
    expect(only(["0", "0", "4"], { max: 40 })).toMatchObject({ "d.p50": 30 });
  });

  it("gives only count and sum of a histogram without buckets or observations", () => {
    expect(valuesOf({ name: "d", histogram: { dataPoints: [{ ...AT, count: "2", sum: 3 }] } })).toEqual({
      "d.count": 2,
      "d.sum": 3,
    });
    const empty = { ...AT, bucketCounts: ["0", "0"], explicitBounds: [1] };
    expect(valuesOf({ name: "d", histogram: { dataPoints: [empty] } })).toEqual({ "d.count": 0 });
    expect(valuesOf({ name: "d", histogram: { dataPoints: [AT] } })).toEqual({ "d.count": 0 });
  });

  it("gives quantiles of an exponential histogram with negative, zero and positive values", () => {
    const point = {
      ...AT,
      ...{ count: "8", sum: 3, scale: 0, zeroCount: "2", zeroThreshold: 0.5 },
      ...{ negative: { offset: 0, bucketCounts: ["2"] }, positive: { offset: 1, bucketCounts: ["2", "2"] } },
    };
    expect(valuesOf({ name: "e", exponentialHistogram: { dataPoints: [point] } })).toEqual({
      "e.count": 8,
      "e.sum": 3,
      "e.p50": 0.5,
      "e.p90": expect.closeTo(6.4),
      "e.p99": expect.closeTo(7.84),
    });
    const fine = { ...AT, count: "1", scale: 20, positive: { offset: -5, bucketCounts: ["1"] }, min: 0.99, max: 1 };
    expect(valuesOf({ name: "e", exponentialHistogram: { dataPoints: [fine] } })["e.p50"]).toBeCloseTo(1, 4);
  });

  it("gives the quantiles of a summary, except those without a value", () => {
    const at = (quantile: number, value: number | string) => ({ quantile, value });
    const quantileValues = [at(0, 1), at(0.5, 2), at(0.999, 9), at(1, 10), at(0.25, "NaN")];
    const point = { ...AT, count: "4", sum: 8, quantileValues };
    expect(valuesOf({ name: "s", summary: { dataPoints: [point] } })).toEqual({
      ...{ "s.count": 4, "s.sum": 8, "s.min": 1, "s.p50": 2, "s.p99.9": 9, "s.max": 10 },
    });
  });

  it("skips data points without a recorded value", () => {
    const dataPoints = [
      { ...AT, flags: 1 },
      { ...AT, flags: 0, asInt: "1" },
    ];
    expect(decode(request({ name: "a", gauge: { dataPoints } }))).toMatchObject({
      points: [{ value: 1, origin: 2 }],
      rejected: [],
    });
  });

  it("rejects data points without a value, with wrong buckets and with too many attributes", () => {
    const many = Array.from({ length: 65 }, (_, i) => text(`k${i}`, "v"));
    const histogram = (bucketCounts: string[], explicitBounds: number[]) => ({
      ...AT,
      count: "1",
      bucketCounts,
      explicitBounds,
    });
    expect(
      decode(request({ name: "a", gauge: { dataPoints: [AT, { ...AT, asInt: "1", attributes: many }] } })).rejected,
    ).toEqual([
      { name: "a", reason: "has no value", origin: 1 },
      { name: "a", reason: "has more than 64 attributes", origin: 2 },
    ]);
    const dataPoints = [histogram(["1"], [1, 2]), histogram(["1", "0", "0"], [2, 1])];
    expect(decode(request({ name: "h", histogram: { dataPoints } })).rejected).toEqual([
      { name: "h", reason: "has bounds that do not fit its buckets", origin: 1 },
      { name: "h", reason: "has bounds that do not fit its buckets", origin: 2 },
    ]);
  });

  it("rejects data points with a long name, or with long labels of their resource", () => {
    const gauge = { dataPoints: [{ ...AT, asInt: "1" }] };
    const reason = "has a name of more than 256 characters with its labels";
    expect(decode(request({ name: "n".repeat(3_000), gauge })).rejected).toMatchObject([{ reason, origin: 1 }]);
    const resource = [text("service.name", "x".repeat(3_000))];
    expect(decode(request({ name: "a", gauge }, resource)).rejected).toMatchObject([{ name: "a", reason, origin: 1 }]);
  });

  it("is too large with more data points than the limit", () => {
    const dataPoints = Array.from({ length: MAX_POINTS + 1 }, () => ({ asInt: "1" }));
    const tooMany = request({ name: "a", gauge: { dataPoints } });
    const tooLarge = expect.objectContaining({ code: "too_large" });
    expect(() => decodeOtlp(encodeRequest(tooMany), "protobuf", [])).toThrow(tooLarge);
    expect(() => decodeOtlp(new TextEncoder().encode(JSON.stringify(tooMany)), "json", [])).toThrow(tooLarge);
  });

  it("is too large with more empty messages, attributes or buckets than the limits, in both encodings", () => {
    const tooLarge = expect.objectContaining({ code: "too_large" });
    const manyOf = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
    const resourceOf = (metrics: Json[]): Json => ({ resource: {}, scopeMetrics: [{ metrics }] });
    const points = (attributes: Json[], count: number): Json => ({
      resourceMetrics: [resourceOf([{ name: "m", gauge: { dataPoints: manyOf(count, { asInt: "1", attributes }) } }])],
    });
    const empty = resourceOf(manyOf(40_000, { name: "" }));
    const attributes = Array.from({ length: 60 }, (_, i) => text(`k${i}`, "v"));
    const list = attribute("list", { arrayValue: { values: manyOf(60_000, { boolValue: true }) } });
    const requests: Json[] = [
      { resourceMetrics: manyOf(3, empty) },
      { resourceMetrics: manyOf(2, resourceOf([{ name: "m", gauge: { dataPoints: manyOf(30_000, {}) } }])) },
      points(attributes, 10_000),
      points([list], 10),
    ];
    for (const request of requests) {
      expect(() => decodeOtlp(encodeRequest(request), "protobuf", [])).toThrow(tooLarge);
      expect(() => decodeOtlp(new TextEncoder().encode(JSON.stringify(request)), "json", [])).toThrow(tooLarge);
    }
    // Parsing them would need more memory than the service has.
    const objects = `{"resourceMetrics":[${"{},".repeat(600_000)}{}]}`;
    expect(() => decodeOtlp(new TextEncoder().encode(objects), "json", [])).toThrow(tooLarge);
  });

  it("rejects data points with more buckets or quantiles than the limit", () => {
    const zeros = Array.from({ length: 1_001 }, () => "0");
    const quantileValues = zeros.map((_, i) => ({ quantile: i / 2_000, value: 1 }));
    const metrics: Json[] = [
      { name: "a", histogram: { dataPoints: [{ ...AT, count: "1", bucketCounts: zeros, explicitBounds: [] }] } },
      { name: "b", exponentialHistogram: { dataPoints: [{ ...AT, count: "1", positive: { bucketCounts: zeros } }] } },
      { name: "c", summary: { dataPoints: [{ ...AT, count: "1", quantileValues }] } },
    ];
    for (const metric of metrics) {
      const { points, rejected } = decode(request(metric));
      expect(points).toEqual([]);
      expect(rejected).toMatchObject([{ reason: "has more than 1000 buckets or quantiles" }]);
    }
  });

  it("keeps the attributes of the resource that name the agent apart from those of its data points", () => {
    const dataPoints = [{ ...AT, asInt: "1", attributes: [text("host.name", "ap-2")] }];
    const body = request({ name: "rtt", gauge: { dataPoints } }, [text("host.name", "ap-1")]);
    const { points } = decodeOtlp(encodeRequest(body), "protobuf", KEPT, ["host.name"]);
    expect(points).toMatchObject([{ labels: { "host.name": "ap-2" }, agentLabels: { "host.name": "ap-1" } }]);
  });

  it("may be empty", () => {
    expect(decode({})).toEqual({ points: [], rejected: [] });
  });

  it("is malformed if its JSON has other types", () => {
    const wrong: Json[] = [
      [],
      { resourceMetrics: 1 },
      { resourceMetrics: [1] },
      request({ name: 1 }),
      request({ name: "a", gauge: [] }),
      request({ name: "a", gauge: { dataPoints: [{ asInt: "x" }] } }),
      request({ name: "a", gauge: { dataPoints: [{ asInt: "1", timeUnixNano: "-1" }] } }),
      request({ name: "a", gauge: { dataPoints: [{ asInt: "1", timeUnixNano: 1.5 }] } }),
      request({ name: "a", gauge: { dataPoints: [{ asInt: "1", attributes: [{ key: "k", value: "v" }] }] } }),
    ];
    for (const value of wrong) {
      expect(() => decodeOtlp(new TextEncoder().encode(JSON.stringify(value)), "json", [])).toThrow(malformed);
    }
    expect(() => decodeOtlp(new TextEncoder().encode("{"), "json", [])).toThrow(malformed);
    expect(() => decodeOtlp(Uint8Array.of(0x22, 0xff, 0x22), "json", [])).toThrow(malformed);
  });

  it("is malformed if an attribute is nested very deeply", () => {
    let value: Json = { intValue: "1" };
    for (let depth = 0; depth < 40; depth += 1) value = { arrayValue: { values: [value] } };
    const deep = request({ name: "a", gauge: { dataPoints: [{ asInt: "1", attributes: [attribute("k", value)] }] } });
    expect(() => decodeOtlp(encodeRequest(deep), "protobuf", [])).toThrow(malformed);
    expect(() => decodeOtlp(new TextEncoder().encode(JSON.stringify(deep)), "json", [])).toThrow(malformed);
  });

  it("never causes another error than malformed, for any bytes and every truncation", () => {
    const point = { ...AT, count: "4", bucketCounts: ["4", "0"], explicitBounds: [10], attributes: [text("k", "v")] };
    const whole = encodeRequest(request({ name: "d", histogram: { dataPoints: [point] } }));
    const attempt = (bytes: Uint8Array) => {
      try {
        decodeOtlp(bytes, "protobuf", KEPT);
      } catch (error) {
        expect(error).toMatchObject({ code: "malformed" });
      }
    };
    for (let length = 0; length < whole.length; length += 1) attempt(whole.subarray(0, length));
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), attempt), { numRuns: 1_000 });
    const changed = fc.tuple(fc.nat(whole.length - 1), fc.nat(255));
    fc.assert(
      fc.property(changed, ([at, byte]) => {
        attempt(whole.with(at, byte));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("an OTLP response", () => {
  const fieldsOf = (bytes: Uint8Array) => {
    const reader = new ProtobufReader(bytes);
    const found: unknown[] = [];
    reader.fields((field) => {
      if (field === 2) found.push(reader.string());
      else
        reader.message((inner) => {
          found.push(inner === 1 ? reader.int() : reader.string());
        });
    });
    return found;
  };
  const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

  it("is empty if nothing was rejected", () => {
    expect(encodeOtlpResponse("protobuf", 0, "")).toHaveLength(0);
    expect(textOf(encodeOtlpResponse("json", 0, ""))).toBe("{}");
  });

  it("has the number of rejected data points and a message otherwise", () => {
    expect(fieldsOf(encodeOtlpResponse("protobuf", 3, "ap-9 is unknown"))).toEqual([3, "ap-9 is unknown"]);
    expect(JSON.parse(textOf(encodeOtlpResponse("json", 3, "ap-9 is unknown")))).toEqual({
      partialSuccess: { rejectedDataPoints: "3", errorMessage: "ap-9 is unknown" },
    });
  });

  it("is a status with a message for an error", () => {
    expect(fieldsOf(encodeOtlpError("protobuf", "no"))).toEqual(["no"]);
    expect(textOf(encodeOtlpError("json", "no"))).toBe('{"message":"no"}');
  });

  it("has the encoding of the request", () => {
    expect(otlpEncoding("application/x-protobuf")).toBe("protobuf");
    expect(otlpEncoding("application/json; charset=utf-8")).toBe("json");
    expect(() => otlpEncoding("text/plain")).toThrow(expect.objectContaining({ code: "unsupported" }));
    expect(() => otlpEncoding(undefined)).toThrow(expect.objectContaining({ code: "unsupported" }));
  });
});
