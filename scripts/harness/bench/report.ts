import { cpus } from "node:os";
import { print, red } from "../../../src/programs/shared/cli.ts";

export type Details = Record<string, number | string>;

/** A figure relative to another one of the same run. */
interface Ratio {
  of: string;
  value: number;
  wanted?: string | undefined;
}

/** The figures and requirements of a run, in the order in which they were measured. */
export class Report {
  readonly #at = new Date().toISOString();
  readonly #figures: object[] = [];
  readonly #promises: { what: string; isKept: boolean; details: Details }[] = [];

  add(what: string, value: number, unit: string, details: Details = {}, ratio?: Ratio): void {
    this.#figures.push({ what, value, unit, ratio, details });
    const wanted = ratio?.wanted === undefined ? "" : ` (${ratio.wanted})`;
    const compared = ratio === undefined ? "" : `, ${format(ratio.value)} × ${ratio.of}${wanted}`;
    print(`  ${what}: ${format(value)} ${unit}${compared}`);
    if (Object.keys(details).length > 0) print(`    ${formatDetails(details)}`);
  }

  /** Records a condition that must hold. The run fails if it does not. */
  require(what: string, isKept: boolean, details: Details): void {
    this.#promises.push({ what, isKept, details });
    print(`  ${isKept ? "kept" : red("VIOLATED")}: ${what} (${formatDetails(details)})`);
  }

  /** Whether nothing was measured. */
  get isEmpty(): boolean {
    return this.#figures.length === 0;
  }

  get areAllKept(): boolean {
    return this.#promises.every(({ isKept }) => isKept);
  }

  toJson(suite: string): string {
    const machine = { cpus: cpus().length, model: cpus()[0]?.model ?? "", arch: process.arch };
    const run = { suite, at: this.#at, machine, figures: this.#figures, promises: this.#promises };
    return `${JSON.stringify(run, null, 2)}\n`;
  }
}

const formatDetails = (details: Details): string =>
  Object.entries(details)
    .map(([name, detail]) => `${name} ${typeof detail === "number" ? format(detail) : detail}`)
    .join(", ");

const format = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
