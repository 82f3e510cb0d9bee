import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatCsvRow, parseCsv } from "../../src/fleet/label-csv.ts";

const cellsOf = (text: string): string[][] => parseCsv(text).rows.map(({ cells }) => cells);

describe("parseCsv", () => {
  it("reads back any cells that formatCsvRow has written", async () => {
    const cell = fc.string({ unit: fc.constantFrom('"', ",", "\r", "\n", "a", "ü", " ") });
    const row = fc.array(cell, { minLength: 1, maxLength: 4 }).filter((cells) => cells.length > 1 || cells[0] !== "");
    await fc.assert(
      fc.property(fc.array(row), (rows) => {
        expect(parseCsv(rows.map(formatCsvRow).join(""))).toMatchObject({ errors: [] });
        expect(cellsOf(rows.map(formatCsvRow).join(""))).toEqual(rows);
      }),
    );
  });

  it("accepts all line ends, empty lines, and a last line without line end", () => {
    expect(parseCsv("a,b\r\n\r\nc,\nd\re")).toEqual({
      rows: [
        { line: 1, cells: ["a", "b"] },
        { line: 3, cells: ["c", ""] },
        { line: 4, cells: ["d"] },
        { line: 5, cells: ["e"] },
      ],
      errors: [],
    });
  });

  it("counts the lines inside of quotes", () => {
    expect(parseCsv('"a\nb\r\nc",1\nd').rows.map(({ line }) => line)).toEqual([1, 4]);
  });

  it("reports each line with a misplaced quote, and continues after it", () => {
    expect(parseCsv('a"b,c\n"a"b\nc\n"d')).toEqual({
      rows: [{ line: 3, cells: ["c"] }],
      errors: [
        { line: 1, reason: "a cell with a quote must be in quotes as a whole" },
        { line: 2, reason: "a cell with a quote must be in quotes as a whole" },
        { line: 4, reason: "a quoted cell has no closing quote" },
      ],
    });
  });
});
