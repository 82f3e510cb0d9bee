/** Draws how the service's figures grow: `npx node scripts/harness/figures/growth-picture.ts <bench.json>` writes docs/growth.svg. */

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Figure, Growth } from "../bench/report.ts";
import { line, number, picture, text } from "./drawing.ts";

const WIDTH = 960;
const MARGIN = 64;
const COLUMNS = 2;
const GAP = 72;
const PANEL_WIDTH = (WIDTH - 2 * MARGIN - GAP * (COLUMNS - 1)) / COLUMNS;
const PANEL_HEIGHT = 150;
const TOP = 112;
const ROW_HEIGHT = PANEL_HEIGHT + 92;

function panel(title: string, points: readonly Growth[], left: number, top: number): string[] {
  const logs = points.map(({ x }) => Math.log10(x));
  const [least, most] = [Math.min(...logs), Math.max(...logs)];
  const max = ceiling(Math.max(...points.map(({ y }) => y)));
  const bottom = top + PANEL_HEIGHT;
  const xOf = ({ x }: Growth): number =>
    left + 24 + ((PANEL_WIDTH - 48) * (Math.log10(x) - least)) / (most - least || 1);
  const yOf = (y: number): number => bottom - (PANEL_HEIGHT * y) / max;
  const ticks = [0, max / 2, max];
  const path = points.map((point) => `${number(xOf(point))} ${number(yOf(point.y))}`);
  return [
    text(left, top - 14, `${title}<tspan class="soft" dx="6">${points[0]?.unit}</tspan>`, 'class="title"'),
    ...ticks.flatMap((tick) => [
      line(left, yOf(tick), left + PANEL_WIDTH, yOf(tick), tick === 0 ? "axis" : "grid"),
      text(left - 8, yOf(tick) + 4, short(tick), 'class="soft" text-anchor="end"'),
    ]),
    `<path d="M${path.join("L")}" class="curve"/>`,
    ...points.flatMap((point) => [
      `<circle cx="${number(xOf(point))}" cy="${number(yOf(point.y))}" r="4" class="dot"/>`,
      text(xOf(point), yOf(point.y) - 10, short(point.y), 'text-anchor="middle"'),
      text(xOf(point), bottom + 18, point.x.toLocaleString("en"), 'class="soft" text-anchor="middle"'),
    ]),
    text(left + PANEL_WIDTH / 2, bottom + 36, points[0]?.of ?? "", 'class="soft" text-anchor="middle"'),
  ];
}

/** A round number that leaves room above the highest point. */
function ceiling(value: number): number {
  const step = 10 ** Math.floor(Math.log10(value));
  return Math.ceil((1.2 * value) / step) * step;
}

const short = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(2)));

function draw(figures: readonly Figure[], at: string): string {
  const growths = figures.flatMap(({ growth }) => (growth === undefined ? [] : [growth]));
  const curves = Object.entries(Object.groupBy(growths, ({ curve }) => curve));
  const height = TOP + Math.ceil(curves.length / COLUMNS) * ROW_HEIGHT - 24;
  return picture({
    width: WIDTH,
    height,
    title: "How the figures grow with the number of agents, the length of a chart and the number of callers",
    style: "\n  .curve { stroke: #2f6fde; } .dot { fill: #2f6fde; }",
    darkStyle: "\n    .curve { stroke: #74a9ff; } .dot { fill: #74a9ff; }",
    content: [
      text(MARGIN, 45, "As it grows", 'class="heading"'),
      text(MARGIN, 68, `One run of npm run bench, ${at.slice(0, 10)}, two cores`, 'class="soft"'),
      ...curves.flatMap(([title, points = []], i) => {
        const left = MARGIN + (i % COLUMNS) * (PANEL_WIDTH + GAP);
        return panel(title, points, left, TOP + Math.floor(i / COLUMNS) * ROW_HEIGHT);
      }),
    ],
  });
}

const { figures, at } = JSON.parse(readFileSync(process.argv[2] ?? "bench.json", "utf8")) as {
  figures: Figure[];
  at: string;
};
writeFileSync(fileURLToPath(new URL("../../../docs/growth.svg", import.meta.url)), draw(figures, at));
