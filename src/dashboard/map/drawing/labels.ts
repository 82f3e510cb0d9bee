import type { WorldPoint } from "../projection.ts";
import { type Frame, screenX, screenY } from "../view.ts";

export interface Town extends WorldPoint {
  name: string;
}

/** A name on the screen: the middle of the text, and the place it names. */
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

/** Wider views have no room for names that tell where one is. */
export const LABELS_FROM_ZOOM = 3.5;
export const LABEL_HEIGHT_PX = 14;
const MAX_LABELS = 60;
const GAP_PX = 6;
const DOT_PX = 3;
/** Where a name goes: by how many halves of its width to the right of the place, and how far below. */
type Offset = readonly [halves: number, downPx: number];
const NEAR: readonly Offset[] = [
  [0, 11],
  [0, -11],
  [1, 0],
  [-1, 0],
];
/** Where a mark stands on the place, and only there: elsewhere names would go to the dots of other places. */
const FAR: readonly Offset[] = [
  [0, 30],
  [0, -30],
];

/** How many of the world's towns, largest first, are worth a name: more, the nearer one looks. */
const consideredAt = (zoom: number): number => Math.round(150 * 2.2 ** (zoom - LABELS_FROM_ZOOM));

/** Names for what is in the frame, larger towns first, none over another or over what is there already. */
export function labelsFor(
  towns: readonly Town[],
  zoom: number,
  frame: Frame,
  widthOf: (text: string) => number,
  taken: readonly Rectangle[],
): Label[] {
  if (zoom < LABELS_FROM_ZOOM) return [];
  const labels: Label[] = [];
  const named: Rectangle[] = [];
  const isFree = (place: Rectangle, others: readonly Rectangle[]) => !others.some((other) => isOverlap(place, other));
  for (const { name, ...town } of towns.slice(0, consideredAt(zoom))) {
    const x = screenX(town.x, frame);
    const y = screenY(town.y, frame);
    if (x < 0 || x > frame.width || y < 0 || y > frame.height) continue;
    const dot = around(x, y, DOT_PX, DOT_PX);
    if (!isFree(dot, named)) continue;
    const half = widthOf(name) / 2 + GAP_PX;
    for (const [halves, downPx] of isFree(dot, taken) ? NEAR : FAR) {
      const [textX, textY] = [x + halves * half, y + downPx];
      const place = around(textX, textY, half, LABEL_HEIGHT_PX / 2);
      if (!isFree(place, named) || !isFree(place, taken)) continue;
      named.push(place, dot);
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

export const isOverlap = (one: Rectangle, other: Rectangle): boolean =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
