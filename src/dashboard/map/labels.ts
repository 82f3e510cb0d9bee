import type { WorldPoint } from "./projection.ts";
import { type Frame, screenX, screenY } from "./view.ts";

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
/** Below the place, above it; farther away where a mark stands on it. */
const OFFSETS_PX = [11, -11, 30, -30] as const;

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
  const occupied = [...taken];
  for (const town of towns.slice(0, consideredAt(zoom))) {
    const townX = screenX(town.x, frame);
    const townY = screenY(town.y, frame);
    if (townX < 0 || townX > frame.width || townY < 0 || townY > frame.height) continue;
    const half = widthOf(town.name) / 2 + GAP_PX;
    for (const offset of OFFSETS_PX) {
      const y = townY + offset;
      const bounds = {
        left: townX - half,
        right: townX + half,
        top: y - LABEL_HEIGHT_PX / 2,
        bottom: y + LABEL_HEIGHT_PX / 2,
      };
      if (occupied.some((other) => isOverlap(bounds, other))) continue;
      occupied.push(bounds);
      labels.push({ text: town.name, x: townX, y, townX, townY });
      break;
    }
    if (labels.length === MAX_LABELS) break;
  }
  return labels;
}

export const isOverlap = (one: Rectangle, other: Rectangle): boolean =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
