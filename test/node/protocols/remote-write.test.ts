import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_POINTS } from "../../../src/protocols/point.ts";
import { checkRemoteWriteType, decodeRemoteWrite } from "../../../src/protocols/prometheus/remote-write.ts";
import { compressSnappy } from "../../../src/protocols/snappy.ts";
import { type Series, writeRequest } from "../../support/protocols/remote-write.ts";

const MAX_BYTES = 8 * 1024 * 1024;

const decode = (...series: Series[]) => decodeRemoteWrite(compressSnappy(writeRequest(series)), MAX_BYTES);

describe("a remote write request", () => {
  it("gives one point for each sample", () => {
    const { points, rejected } = decode(
      {
        labels: { __name__: "up", instance: "ap-1", job: "node" },
        samples: [
          [1, 1_700_000_000_123],
          [0, 1_700_000_015_123],
        ],
      },
      { labels: { __name__: "load1" }, samples: [[0.25, 1_700_000_000_123]] },
    );
    const labels = { instance: "ap-1", job: "node" };
    expect(points).toEqual([
      { name: "up", labels, tsMs: 1_700_000_000_123, value: 1 },
      { name: "up", labels, tsMs: 1_700_000_015_123, value: 0 },
      { name: "load1", labels: {}, tsMs: 1_700_000_000_123, value: 0.25 },
    ]);
    expect(rejected).toEqual([]);
  });

  it("skips stale markers and other values that are not numbers", () => {
    const stale = new DataView(new ArrayBuffer(8));
    stale.setBigUint64(0, 0x7ff0000000000002n);
    expect(
      decode({
        labels: { __name__: "up" },
        samples: [
          [stale.getFloat64(0), 1],
          [Number.NaN, 2],
        ],
      }),
    ).toEqual({
      points: [],
      rejected: [],
    });
  });

  it("ignores labels without a value", () => {
    expect(decode({ labels: { __name__: "up", job: "" }, samples: [[1, 1]] }).points).toMatchObject([{ labels: {} }]);
  });

  it("accepts a label with any name", () => {
    const { points } = decode({
      labels: [
        ["__name__", "up"],
        ["__proto__", "x"],
      ],
      samples: [[1, 1]],
    });
    expect(Object.entries(points[0]?.labels ?? {})).toEqual([["__proto__", "x"]]);
  });

  it("rejects a series without a name, with a label twice, with too many labels, or with a native histogram", () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`l${i}`, "x"]));
    const { points, rejected } = decode(
      { labels: { job: "node" }, samples: [[1, 1]] },
      {
        labels: [
          ["__name__", "twice"],
          ["a", "1"],
          ["a", "2"],
        ],
        samples: [[1, 1]],
      },
      { labels: { __name__: "many", ...many }, samples: [[1, 1]] },
      { labels: { __name__: "native" }, samples: [], histograms: 1 },
      { labels: { __name__: "long", job: "x".repeat(3_000) }, samples: [[1, 1]] },
    );
    expect(points).toEqual([]);
    expect(rejected).toEqual([
      { name: "", reason: "has no name" },
      { name: "twice", reason: "has a label twice" },
      { name: "many", reason: "has more than 64 labels" },
      { name: "native", reason: "is a native histogram, which is not supported" },
      { name: "long", reason: "has a name of more than 256 characters with its labels" },
    ]);
  });

  it("is too large with more points than the limit, in one series or in many", () => {
    const samples = Array.from({ length: MAX_POINTS + 1 }, (_, i): [number, number] => [i, i]);
    expect(() => decode({ labels: { __name__: "up" }, samples })).toThrow(
      expect.objectContaining({ code: "too_large" }),
    );
    const half = { labels: { __name__: "up" }, samples: samples.slice(0, MAX_POINTS / 2 + 1) };
    expect(() => decode(half, half)).toThrow(expect.objectContaining({ code: "too_large" }));
    expect(decode({ labels: { __name__: "up" }, samples: samples.slice(1) }).points).toHaveLength(MAX_POINTS);
  });

  it("is too large if its content is", () => {
    expect(() => decodeRemoteWrite(compressSnappy(new Uint8Array(2_000)), 1_000)).toThrow(
      expect.objectContaining({ code: "too_large" }),
    );
  });

  it("is malformed at every truncation of its message, or read without the last series", () => {
    const bytes = writeRequest([{ labels: { __name__: "up", job: "node" }, samples: [[1, 1_700_000_000_123]] }]);
    for (let length = 1; length < bytes.length; length += 1) {
      try {
        const { points } = decodeRemoteWrite(compressSnappy(bytes.subarray(0, length)), MAX_BYTES);
        expect(points).toHaveLength(1);
      } catch (error) {
        expect(error).toMatchObject({ code: "malformed" });
      }
    }
  });

  it("never causes another error than malformed or too large", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          decodeRemoteWrite(compressSnappy(bytes), MAX_BYTES);
        } catch (error) {
          expect(error).toMatchObject({ code: "malformed" });
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("the content type of a remote write request", () => {
  it("is that of version 1.0", () => {
    for (const type of ["application/x-protobuf", "application/x-protobuf;proto=prometheus.WriteRequest"]) {
      expect(() => checkRemoteWriteType(type)).not.toThrow();
    }
  });

  it("is not supported otherwise", () => {
    for (const type of [undefined, "application/json", "application/x-protobuf;proto=io.prometheus.write.v2.Request"]) {
      expect(() => checkRemoteWriteType(type)).toThrow(expect.objectContaining({ code: "unsupported" }));
    }
  });
});
