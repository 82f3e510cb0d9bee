import { cpus } from "node:os";
import { print, red } from "../../../src/programs/shared/cli.ts";

/** Ids of the figures that docs/scaling.md uses. */
export type FigureId =
  | "ingest-http"
  | "ingest-mqtt"
  | "live-query"
  | "live-news"
  | "chart-day"
  | "history"
  | "callback"
  | "idle-socket"
  | "login"
  | "bytes-points_v1"
  | "bytes-minutes_v1";

/** The figures of a run, in the order in which they were taken. */

export interface Figure {
  /** What others find it by. */
  id?: FigureId;
  what: string;
  value: number;
  unit: string;
  /** This figure next to another one of the same run. */
  ratio?: { of: string; value: number; wanted?: string };
  /** Whatever else was seen: latencies, CPU time, failures. */
  details?: Record<string, number | string>;
  /** A point on a curve that shows how it grows. */
  growth?: Growth;
}

export interface Growth {
  curve: string;
  x: number;
  /** What there is more and more of. */
  of: string;
  y: number;
  unit: string;
}

/** What must be so, and whether it was. */
export interface Promised {
  what: string;
  isKept: boolean;
  details?: Record<string, number | string>;
}

export class Report {
  readonly #suite: string;
  readonly #figures: Figure[] = [];
  readonly #promises: Promised[] = [];
  readonly #at = new Date().toISOString();

  constructor(suite: string) {
    this.#suite = suite;
  }

  add(figure: Figure): Figure {
    this.#figures.push(figure);
    const { ratio } = figure;
    print(
      `  ${figure.what}: ${number(figure.value)} ${figure.unit}${ratio ? `, ${number(ratio.value)} × ${ratio.of}` : ""}`,
    );
    return figure;
  }

  /** Notes whether a promise was kept. One that was not makes the run fail. */
  require(promised: Promised): void {
    this.#promises.push(promised);
    print(`  ${promised.isKept ? "kept" : red("BROKEN")}: ${promised.what} (${inWords(promised.details ?? {})})`);
  }

  get areAllKept(): boolean {
    return this.#promises.every(({ isKept }) => isKept);
  }

  print(): void {
    const rows = this.#figures.map(({ what, value, unit, ratio, details = {} }) => [
      what,
      `${number(value)} ${unit}`,
      ratio === undefined ? "" : `${number(ratio.value)} × ${ratio.of}${ratio.wanted ? ` (${ratio.wanted})` : ""}`,
      inWords(details),
    ]);
    const table = [["what", "figure", "ratio", "besides"], ["---", "---", "---", "---"], ...rows];
    const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
    print("");
    for (const row of table) {
      const isRule = row[0] === "---";
      print(`| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0, isRule ? "-" : " ")).join(" | ")} |`);
    }
  }

  toJson(): string {
    const machine = { cpus: cpus().length, model: cpus()[0]?.model ?? "", arch: process.arch };
    return `${JSON.stringify({ suite: this.#suite, at: this.#at, machine, figures: this.#figures, promises: this.#promises }, null, 2)}\n`;
  }
}

const inWords = (details: Record<string, number | string>): string =>
  Object.entries(details)
    .map(([name, detail]) => `${name} ${typeof detail === "number" ? number(detail) : detail}`)
    .join(", ");

const number = (value: number): string => {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
};
