import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeLines } from "../../../src/protocols/influx/line-protocol.ts";
import { formatInfluxName } from "../../../src/protocols/metric-name.ts";
import { MAX_POINTS } from "../../../src/protocols/point.ts";

const decode = (text: string, precision?: string) => decodeLines(new TextEncoder().encode(text), precision);
const reasonsOf = (text: string) => decode(text).rejected.map(({ reason }) => reason);

describe("a line", () => {
  it("gives one point for each field, with the tags as labels", () => {
    const { points, rejected } = decode("cpu,host=ap-1,cpu=cpu0 usage_idle=98.5,usage_user=1.5 1700000000123456789");
    const common = { labels: { host: "ap-1", cpu: "cpu0" }, tsMs: 1_700_000_000_123, origin: 1 };
    expect(points).toEqual([
      { name: "cpu.usage_idle", value: 98.5, ...common },
      { name: "cpu.usage_user", value: 1.5, ...common },
    ]);
    expect(rejected).toEqual([]);
  });

  it("has values of all types", () => {
    const values = decode('m a=1,b=-2i,c=3u,d=1.5e3,e=t,f=FALSE,g="text",h=+.5,i=7.').points.map(({ value }) => value);
    expect(values).toEqual([1, -2, 3, 1500, 1, 0, "text", 0.5, 7]);
  });

  it("has a timestamp in the given precision, rounded down to milliseconds", () => {
    const tsMs = (timestamp: string, precision?: string) => decode(`m f=1 ${timestamp}`, precision).points[0]?.tsMs;
    expect(tsMs("1700000000123999999")).toBe(1_700_000_000_123);
    expect(tsMs("1700000000123999999", "ns")).toBe(1_700_000_000_123);
    expect(tsMs("1700000000123999", "us")).toBe(1_700_000_000_123);
    expect(tsMs("1700000000123", "ms")).toBe(1_700_000_000_123);
    expect(tsMs("1700000000", "s")).toBe(1_700_000_000_000);
    expect(tsMs("28333333", "m")).toBe(1_699_999_980_000);
  });

  it("has no timestamp if none is given", () => {
    expect(decode("m f=1").points[0]?.tsMs).toBeUndefined();
    expect(decode("m f=1 \n").points[0]?.tsMs).toBeUndefined();
  });

  it("has escapes in names and tags, and others in strings", () => {
    const { points } = decode(String.raw`my\ meas\,x,ta\=g=va\ lue\,1 fi\ eld="a \"b\" \\ c\n",g=1`);
    expect(points[0]).toMatchObject({
      name: formatInfluxName("my meas,x", "fi eld"),
      labels: { "ta=g": "va lue,1" },
      value: 'a "b" \\ c\\n',
    });
  });

  it("has a backslash that escapes nothing as it is", () => {
    const { points } = decode(String.raw`a\b,c\d=e\f g\h=1`);
    expect(points).toMatchObject([{ name: formatInfluxName("a\\b", "g\\h"), labels: { "c\\d": "e\\f" } }]);
  });

  it("has a name from which the measurement and the field can be told", () => {
    expect(decode("a.b c.d=1").points[0]?.name).toBe("a\\.b.c.d");
  });

  it("may have newlines in a string", () => {
    const { points } = decode('m f="a\nb",g=1\nn f=2');
    expect(points).toMatchObject([
      { name: "m.f", value: "a\nb", origin: 1 },
      { name: "m.g", value: 1, origin: 1 },
      { name: "n.f", value: 2, origin: 3 },
    ]);
  });

  it("is ignored if it is empty or a comment, and may end with a carriage return", () => {
    const { points, rejected } = decode("# comment\n\n  \r\na f=1\r\n# comment");
    expect(points).toMatchObject([{ name: "a.f", origin: 4 }]);
    expect(rejected).toEqual([]);
  });

  it("is rejected by its number and does not affect others", () => {
    const { points, rejected } = decode('a f=1\nb f=\nc f="x\nd f=1\ne\nf f=1');
    expect(points.map(({ name }) => name)).toEqual(["a.f", "d.f", "f.f"]);
    expect(rejected).toEqual([
      { name: "line 2", reason: "has a field that is no number, boolean or quoted string", origin: 2 },
      { name: "line 3", reason: "has a string without an end", origin: 3 },
      { name: "line 5", reason: "has no fields", origin: 5 },
    ]);
  });

  it("is rejected with a reason", () => {
    expect(reasonsOf("m")).toEqual(["has no fields"]);
    expect(reasonsOf(",a=b f=1")).toEqual(["has no measurement"]);
    expect(reasonsOf("m,a f=1")).toEqual(["has a tag without a name or a value"]);
    expect(reasonsOf("m,a= f=1")).toEqual(["has a tag without a name or a value"]);
    expect(reasonsOf("m,a=1,a=2 f=1")).toEqual(["has a tag twice"]);
    const tooLong = ["has a name of more than 256 characters with its labels"];
    expect(reasonsOf(`${"m".repeat(3_000)} f=1`)).toEqual(tooLong);
    expect(reasonsOf(`m ${"f".repeat(3_000)}=1`)).toEqual(tooLong);
    expect(reasonsOf(`m,t=${"v".repeat(3_000)} f=1`)).toEqual(tooLong);
    expect(reasonsOf("m f")).toEqual(["has a field without a name or a value"]);
    expect(reasonsOf("m f=NaN")).toEqual(["has a field that is no number, boolean or quoted string"]);
    expect(reasonsOf("m f=1.5i")).toEqual(["has a field that is no number, boolean or quoted string"]);
    expect(reasonsOf("m f=-1u")).toEqual(["has a field that is no number, boolean or quoted string"]);
    expect(reasonsOf("m f=1 x")).toEqual(["has a timestamp that is no integer"]);
    expect(reasonsOf("m f=1 99999999999999999999")).toEqual(["has a timestamp that is no integer"]);
    expect(reasonsOf("m f=1 1 1")).toEqual(["has text after its fields or its timestamp"]);
    expect(reasonsOf('m f="a"b')).toEqual(["has text after its fields or its timestamp"]);
    expect(reasonsOf(`m,${Array.from({ length: 65 }, (_, i) => `t${i}=x`).join()} f=1`)).toEqual([
      "has more than 64 tags",
    ]);
  });
});

describe("a body in line protocol", () => {
  it("is rejected in linear time if its value is a long row of digits that is no number", () => {
    const digits = "1".repeat(1024 * 1024);
    const { points, rejected } = decode(`m f=${digits}x\nm f=${digits}.5x\nm f=-${digits}ee\nm f=1`);
    expect([points.length, rejected.length]).toEqual([1, 3]);
  });

  it("is malformed with another precision or bytes that are not UTF-8", () => {
    const malformed = expect.objectContaining({ code: "malformed" });
    for (const precision of ["", "d", "constructor"]) expect(() => decode("m f=1", precision)).toThrow(malformed);
    expect(() => decodeLines(Uint8Array.of(0xff), undefined)).toThrow(malformed);
  });

  it("is too large with more points or errors than the limit", () => {
    const tooLarge = expect.objectContaining({ code: "too_large" });
    expect(() => decode("m f=1\n".repeat(MAX_POINTS + 1))).toThrow(tooLarge);
    expect(() => decode("m\n".repeat(MAX_POINTS + 1))).toThrow(tooLarge);
  });

  it("gives what it was written from, for all texts", () => {
    const word = fc.string({ unit: fc.constantFrom(..."ab,= \"'é.#"), minLength: 1 });
    const escaped = (text: string) => text.replace(/[,= ]/g, "\\$&");
    const measurement = word.filter((text) => !text.startsWith("#"));
    fc.assert(
      fc.property(
        measurement,
        fc.dictionary(word, word),
        word,
        fc.string({ unit: "grapheme" }),
        (name, tags, field, value) => {
          const written = Object.entries(tags).map(([key, tag]) => `,${escaped(key)}=${escaped(tag)}`);
          const quoted = value.replace(/["\\]/g, "\\$&");
          const { points } = decode(`${escaped(name)}${written.join("")} ${escaped(field)}="${quoted}" 1000000`);
          expect(points).toEqual([{ name: formatInfluxName(name, field), labels: tags, tsMs: 1, value, origin: 1 }]);
        },
      ),
    );
  });

  it("never causes another error than rejections, for all texts", () => {
    const text = fc.string({ unit: fc.constantFrom(...'ab,= "\\\n\r#1i') });
    fc.assert(
      fc.property(text, (body) => void decode(body)),
      { numRuns: 2_000 },
    );
  });
});
