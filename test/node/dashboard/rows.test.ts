import { describe, expect, it } from "vitest";
import { RowStore } from "../../../src/dashboard/features/jobs/row-store.ts";
import { csvField } from "../../../src/dashboard/lib/format.ts";

const textOf = async (blobs: readonly Blob[]): Promise<string> => await new Blob([...blobs]).text();

describe("RowStore", () => {
  it("exports rows as NDJSON, and as CSV with every field of any row", async () => {
    const store = new RowStore();
    store.add([{ time: "t1", field: "load", value: 0.5 }]);
    store.add([{ time: "t2", note: 'said "no", twice' }, { value: { deep: [1] } }, "bare", null]);
    expect(store.count).toBe(5);
    expect(
      (await textOf(store.ndjson()))
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { time: "t1", field: "load", value: 0.5 },
      { time: "t2", note: 'said "no", twice' },
      { value: { deep: [1] } },
      "bare",
      null,
    ]);
    expect(await textOf(await store.csv())).toBe(
      [
        "time,field,value,note",
        "t1,load,0.5,",
        't2,,,"said ""no"", twice"',
        ',,"{""deep"":[1]}",',
        ",,bare,",
        ",,,",
        "",
      ].join("\r\n"),
    );
  });

  it("exports no inherited properties as fields", async () => {
    const store = new RowStore();
    store.add([JSON.parse('{"constructor": 1, "__proto__": 2}'), {}]);
    expect(await textOf(await store.csv())).toBe("constructor,__proto__\r\n1,2\r\n,\r\n");
  });
});

describe("csvField", () => {
  it("escapes formulas for spreadsheets, and keeps numbers", () => {
    for (const text of ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"]) expect(csvField(text)).toBe(`'${text}`);
    for (const text of ["\r=1", "\n=1"]) expect(csvField(text)).toBe(`"'${text}"`);
    expect(csvField('=HYPERLINK("x")')).toBe(`"'=HYPERLINK(""x"")"`);
    expect(csvField(-1.5e-7)).toBe("-1.5e-7");
  });
});
