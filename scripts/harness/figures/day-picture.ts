/** Draws a day at an emulated place: `npx node scripts/harness/figures/day-picture.ts` writes docs/emulated-day.svg. */

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { TECHNOLOGIES, type Technology } from "../../../src/emulator/models/access-point.ts";
import { createSite, stepSite } from "../../../src/emulator/models/site.ts";
import { line, number, picture, text } from "./drawing.ts";

const SEED = 28_552;
const MIDNIGHT_MS = Date.UTC(2026, 2, 20);
const DAY_S = 86_400;
const BUCKET_S = 600;
const NUM_DEVICES = 40;
/** The picture from close by: so long before and after a blockage in the afternoon. */
const CLOSE_UP_S = 20;
const CLOSE_UP_FROM_S = 14 * 3_600;

const FIELDS = ["load", "users", "throughput_mbps"] as const;
type Field = (typeof FIELDS)[number];

interface Day {
  /** Means over buckets. */
  means: Record<Technology, Record<Field, number[]>>;
  /** Users in every second. */
  users: Record<Technology, number[]>;
  blockedS: number[];
}

function emulateDay(): Day {
  const perTechnology = <T>(make: () => T): Record<Technology, T> => ({ "5G": make(), WiFi: make(), LiFi: make() });
  const day: Day = {
    means: perTechnology(() => ({ load: [], users: [], throughput_mbps: [] })),
    users: perTechnology(() => []),
    blockedS: [],
  };
  const accessPoints = TECHNOLOGIES.map((technology) => ({ apId: technology, technology, numDevices: NUM_DEVICES }));
  let site = createSite({ longitudeDeg: 0, accessPoints }, SEED);
  for (let second = 0; second < DAY_S; second += 1) {
    const step = stepSite(site, MIDNIGHT_MS + second * 1_000);
    site = step.site;
    const bucket = Math.floor(second / BUCKET_S);
    for (const [index, technology] of TECHNOLOGIES.entries()) {
      const sample = step.samples[index]?.sample ?? {};
      for (const field of FIELDS) {
        const means = day.means[technology][field];
        means[bucket] = (means[bucket] ?? 0) + (sample[field] ?? 0) / BUCKET_S;
      }
      day.users[technology].push(sample.users ?? 0);
      if (sample.blockage === 1) day.blockedS.push(second);
    }
  }
  return day;
}

const WIDTH = 960;
const LEFT = 64;
const RIGHT = 44;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;

const CLASS: Record<Technology, string> = { "5G": "five-g", WiFi: "wifi", LiFi: "lifi" };

interface Panel {
  title: string;
  unit: string;
  top: number;
  height: number;
  max: number;
  ticks: number[];
}

const yOf = ({ top, height, max }: Panel, value: number): number => top + height * (1 - value / max);

function frame(panel: Panel): string[] {
  const { title, unit, top, ticks } = panel;
  return [
    text(LEFT, top - 12, `${title}<tspan class="soft" dx="6">${unit}</tspan>`, 'class="title"'),
    ...ticks.flatMap((tick) => [
      line(LEFT, yOf(panel, tick), WIDTH - RIGHT, yOf(panel, tick), tick === 0 ? "axis" : "grid"),
      text(LEFT - 10, yOf(panel, tick) + 4, String(tick), 'class="soft" text-anchor="end"'),
    ]),
  ];
}

function curve(panel: Panel, values: number[], technology: Technology): string[] {
  const step = PLOT_WIDTH / values.length;
  const points = values.map((value, index) => `${number(LEFT + (index + 0.5) * step)} ${number(yOf(panel, value))}`);
  const bottom = number(yOf(panel, 0));
  const [from, to] = [number(LEFT + step / 2), number(LEFT + PLOT_WIDTH - step / 2)];
  return [
    `<path d="M${from} ${bottom}L${points.join("L")}L${to} ${bottom}Z" class="area ${CLASS[technology]}"/>`,
    `<path d="M${points.join("L")}" class="curve ${CLASS[technology]}"/>`,
  ];
}

const HOURS = [0, 3, 6, 9, 12, 15, 18, 21, 24];
const xOfHour = (hour: number): number => LEFT + (PLOT_WIDTH * hour) / 24;

const hourLines = ({ top, height }: Panel): string[] =>
  HOURS.map((hour) => line(xOfHour(hour), top, xOfHour(hour), top + height, "grid"));

const hourNames = (y: number): string[] =>
  HOURS.map((hour) =>
    text(xOfHour(hour), y, `${String(hour).padStart(2, "0")}:00`, 'class="soft" text-anchor="middle"'),
  );

function blockages(blockedS: number[], top: number, height: number): string[] {
  const marks = blockedS.map((second) => {
    const x = number(LEFT + (PLOT_WIDTH * second) / DAY_S);
    return `M${x} ${top}v${height}`;
  });
  return [
    text(LEFT, top - 12, 'LiFi link blocked<tspan class="soft" dx="6">one mark per second</tspan>', 'class="title"'),
    `<rect x="${LEFT}" y="${top}" width="${PLOT_WIDTH}" height="${height}" class="strip"/>`,
    `<path d="${marks.join("")}" class="mark"/>`,
  ];
}

/** Second by second: where the devices of a blocked link go. */
function closeUp({ users, blockedS }: Day, panel: Panel): string[] {
  const blockedAt = blockedS.find((second, index) => second >= CLOSE_UP_FROM_S && blockedS[index + 2] === second + 2);
  const from = (blockedAt ?? CLOSE_UP_FROM_S) - CLOSE_UP_S;
  const span = 2 * CLOSE_UP_S;
  const step = PLOT_WIDTH / span;
  const clock = (second: number): string => new Date(MIDNIGHT_MS + second * 1_000).toISOString().slice(11, 19);
  const shade = blockedS
    .filter((second) => second >= from && second < from + span)
    .map((second) => {
      const x = number(LEFT + (second - from) * step);
      return `<rect x="${x}" y="${panel.top}" width="${number(step)}" height="${panel.height}" class="shade"/>`;
    });
  const stairs = TECHNOLOGIES.map((technology) => {
    const path = users[technology].slice(from, from + span).map((value, index) => {
      const y = number(yOf(panel, value));
      return `${index === 0 ? `M${LEFT} ${y}` : `V${y}`}H${number(LEFT + (index + 1) * step)}`;
    });
    return `<path d="${path.join("")}" class="curve ${CLASS[technology]}"/>`;
  });
  const times = [0, 10, 20, 30, 40].map((second) =>
    text(
      LEFT + second * step,
      panel.top + panel.height + 18,
      clock(from + second),
      'class="soft" text-anchor="middle"',
    ),
  );
  return [...shade, ...frame(panel), ...stairs, ...times];
}

const STYLE = `
  .strip { fill: #f3f5f8; }
  .shade { fill: #d98200; fill-opacity: 0.16; }
  .mark { stroke: #d98200; stroke-width: 0.7; stroke-opacity: 0.75; }
  .area { fill-opacity: 0.07; }
  .curve.five-g { stroke: #2f6fde; } .area.five-g, .dot.five-g { fill: #2f6fde; }
  .curve.wifi { stroke: #0b8f70; } .area.wifi, .dot.wifi { fill: #0b8f70; }
  .curve.lifi { stroke: #d98200; } .area.lifi, .dot.lifi { fill: #d98200; }`;

const DARK_STYLE = `
    .strip { fill: #182028; }
    .shade { fill: #ffb547; fill-opacity: 0.2; }
    .mark { stroke: #ffb547; }
    .area { fill-opacity: 0.1; }
    .curve.five-g { stroke: #74a9ff; } .area.five-g, .dot.five-g { fill: #74a9ff; }
    .curve.wifi { stroke: #3fd6ae; } .area.wifi, .dot.wifi { fill: #3fd6ae; }
    .curve.lifi { stroke: #ffb547; } .area.lifi, .dot.lifi { fill: #ffb547; }`;

function draw(day: Day): string {
  const panels: Record<Field, Panel> = {
    load: { title: "Load", unit: "share of capacity", top: 118, height: 130, max: 1, ticks: [0, 0.5, 1] },
    users: { title: "Users", unit: "connected devices", top: 296, height: 130, max: 50, ticks: [0, 25, 50] },
    throughput_mbps: { title: "Throughput", unit: "Mbit/s", top: 474, height: 130, max: 500, ticks: [0, 250, 500] },
  };
  const stripTop = 652;
  const stripHeight = 22;
  const close: Panel = {
    title: "Users, second by second",
    unit: "around one blockage: the light's devices go to 5G and WiFi, and come back",
    ...{ top: 752, height: 130, max: 60, ticks: [0, 30, 60] },
  };
  const height = 930;
  const legend = TECHNOLOGIES.flatMap((technology, index) => {
    const x = WIDTH - RIGHT - 198 + index * 72;
    return [
      `<circle cx="${x}" cy="40" r="5" class="dot ${CLASS[technology]}"/>`,
      text(x + 11, 44, technology, 'class="title"'),
    ];
  });
  const perDay = day.blockedS.filter((second, index) => day.blockedS[index - 1] !== second - 1).length;
  return picture({
    width: WIDTH,
    height,
    title: "A day of an emulated place: load, users and throughput of 5G, WiFi and LiFi",
    style: STYLE,
    darkStyle: DARK_STYLE,
    content: [
      text(LEFT, 45, "A day at an emulated place", 'class="heading"'),
      text(
        LEFT,
        68,
        `One access point of each kind with ${NUM_DEVICES} devices each, means over ${BUCKET_S / 60} minutes; ${perDay} blockages of the LiFi link`,
        'class="soft"',
      ),
      ...legend,
      ...FIELDS.flatMap((field) => [...hourLines(panels[field]), ...frame(panels[field])]),
      ...hourNames(stripTop + stripHeight + 18),
      ...FIELDS.flatMap((field) =>
        TECHNOLOGIES.flatMap((technology) => curve(panels[field], day.means[technology][field], technology)),
      ),
      ...blockages(day.blockedS, stripTop, stripHeight),
      ...closeUp(day, close),
    ],
  });
}

writeFileSync(fileURLToPath(new URL("../../../docs/emulated-day.svg", import.meta.url)), draw(emulateDay()));
