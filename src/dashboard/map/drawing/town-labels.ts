import type { WorldPoint } from "../projection.ts";
import { type Frame, screenX, screenY } from "../view.ts";

export interface Town extends WorldPoint {
  name: string;
}

/** A name on the screen: the centre of the text, and the position of the town. */
export interface Label {
  text: string;
  x: number;
  y: number;
  townX: number;
  townY: number;
}

/** A rectangle of the screen, in pixels. */
export interface Rectangle {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** At a lower zoom there is no room for useful names. */
export const LABELS_FROM_ZOOM = 3.5;
export const LABEL_HEIGHT_PX = 14;
const MAX_LABELS = 60;
const GAP_PX = 6;
const DOT_PX = 3;
/** The position of a text relative to its town: half widths to the right, and pixels down. */
type Offset = readonly [halfWidths: number, downPx: number];
const NEAR: readonly Offset[] = [
  [0, 11],
  [0, -11],
  [1, 0],
  [-1, 0],
];
/** Only for towns under a marker: a name at this distance could be mistaken for that of another town. */
const FAR: readonly Offset[] = [
  [0, 30],
  [0, -30],
];

/** Returns how many of the largest towns get a name. Their number grows with the zoom. */
const townCountAt = (zoom: number): number => Math.round(150 * 2.2 ** (zoom - LABELS_FROM_ZOOM));

/** Places the names of towns in the frame, larger towns first. No name covers another one or an occupied rectangle. */
export function placeLabels(
  towns: readonly Town[],
  zoom: number,
  frame: Frame,
  widthOf: (text: string) => number,
  occupied: readonly Rectangle[],
): Label[] {
  if (zoom < LABELS_FROM_ZOOM) return [];
  const labels: Label[] = [];
  const named: Rectangle[] = [];
  const isFree = (area: Rectangle, others: readonly Rectangle[]) => !others.some((other) => overlaps(area, other));
  for (const { name, ...town } of towns.slice(0, townCountAt(zoom))) {
    const x = screenX(town.x, frame);
    const y = screenY(town.y, frame);
    if (x < 0 || x > frame.width || y < 0 || y > frame.height) continue;
    const dot = around(x, y, DOT_PX, DOT_PX);
    if (!isFree(dot, named)) continue;
    const half = widthOf(name) / 2 + GAP_PX;
    for (const [halfWidths, downPx] of isFree(dot, occupied) ? NEAR : FAR) {
      const [textX, textY] = [x + halfWidths * half, y + downPx];
      const area = around(textX, textY, half, LABEL_HEIGHT_PX / 2);
      if (!isFree(area, named) || !isFree(area, occupied)) continue;
      named.push(area, dot);
      labels.push({ text: name, x: textX, y: textY, townX: x, townY: y });
      break;
    }
    if (labels.length === MAX_LABELS) break;
  }
  return labels;
}

const around = (x: number, y: number, halfWidth: number, halfHeight: number): Rectangle => ({
  left: x - halfWidth,
  right: x + halfWidth,
  top: y - halfHeight,
  bottom: y + halfHeight,
});

export const overlaps = (a: Rectangle, b: Rectangle): boolean =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
