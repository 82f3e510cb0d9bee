import { describe, expect, it } from "vitest";
import { acceptsGzip } from "../../../src/http/accept-encoding.ts";

describe("acceptsGzip", () => {
  it.each<[string | undefined, boolean]>([
    ["gzip", true],
    ["GZIP", true],
    ["x-gzip", true],
    ["br, gzip", true],
    ["gzip, deflate, br, zstd", true],
    ["br;q=1, gzip ; q=0.5", true],
    ["gzip;q=0.001", true],
    ["*", true],
    ["*;q=0.1", true],
    ["*;q=0, gzip", true],
    ["identity;q=0.5, gzip;q=0.5", true],
    ["identity;q=0, gzip", true],
    [undefined, false],
    ["", false],
    ["identity", false],
    ["br", false],
    ["gzip;q=0", false],
    ["gzip;q=0.000", false],
    ["gzip;Q=0", false],
    ["gzip;q=0, *", false],
    ["*, gzip;q=0", false],
    ["*;q=0", false],
    ["identity;q=1, gzip;q=0.5", false],
    ["gzip;q=x", false],
    ["gzip;q=2", false],
    ["gzip;q=-1", false],
    ["notgzip", false],
    ["gzipped, gz ip", false],
    [";,;q=1,,", false],
  ])("returns for %j: %s", (header, expected) => {
    expect(acceptsGzip(header)).toBe(expected);
  });
});
