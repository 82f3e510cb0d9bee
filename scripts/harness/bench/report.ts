import { cpus } from "node:os";
import { print, red } from "../../../src/programs/shared/cli.ts";

type Details = Record<string, number | string>;

export interface Figure {
  what: string;
  value: number;
  unit: string;
  /** The figure relative to another one of the same run. */
  ratio?: { of: string; value: number; wanted?: string };
  details?: Details;
}

/** A condition that must hold. */
export interface Requirement {
  what: string;
  isKept: boolean;
  details: Details;
}

/** The figures of a run, in the order in which they were measured. */
export class Report {
  readonly #suite: string;
  readonly #figures: Figure[] = [];
  readonly #promises: Requirement[] = [];
  readonly #at = new Date().toISOString();

  constructor(suite: string) {
    this.#suite = suite;
  }

  add(what: string, value: number, unit: string, more: Pick<Figure, "ratio" | "details"> = {}): void {
    this.#figures.push({ what, value, unit, ...more });
    const { ratio } = more;
    print(`  ${what}: ${format(value)} ${unit}${ratio ? `, ${format(ratio.value)} × ${ratio.of}` : ""}`);
  }

  /** Records a requirement. The run fails if one is violated. */
  require(requirement: Requirement): void {
    this.#promises.push(requirement);
    const { what, isKept, details } = requirement;
    print(`  ${isKept ? "kept" : red("VIOLATED")}: ${what} (${formatDetails(details)})`);
  }

  get areAllKept(): boolean {
    return this.#promises.every(({ isKept }) => isKept);
  }

  print(): void {
    const rows = this.#figures.map(({ what, value, unit, ratio, details = {} }) => [
      what,
      `${format(value)} ${unit}`,
      ratio === undefined ? "" : `${format(ratio.value)} × ${ratio.of}${ratio.wanted ? ` (${ratio.wanted})` : ""}`,
      formatDetails(details),
    ]);
    const table = [["what", "figure", "ratio", "details"], ["---", "---", "---", "---"], ...rows];
    const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
    print("");
    for (const row of table) {
      const filler = row[0] === "---" ? "-" : " ";
      print(`| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0, filler)).join(" | ")} |`);
    }
  }

  toJson(): string {
    const machine = { cpus: cpus().length, model: cpus()[0]?.model ?? "", arch: process.arch };
    const run = { suite: this.#suite, at: this.#at, machine, figures: this.#figures, promises: this.#promises };
    return `${JSON.stringify(run, null, 2)}\n`;
  }
}

const formatDetails = (details: Details): string =>
  Object.entries(details)
    .map(([name, detail]) => `${name} ${typeof detail === "number" ? format(detail) : detail}`)
    .join(", ");

const format = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
