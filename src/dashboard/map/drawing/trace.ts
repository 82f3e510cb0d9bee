import { project } from "../projection.ts";
import type { Line } from "../topology.ts";
import type { Box, Frame } from "../view.ts";

/** A line in the world, and the box around it: what is not in the frame need not be looked at. */
export interface Shape {
  /** x and y in turn. */
  points: Float64Array;
  box: Box;
}

/** Of a canvas, what drawing lines takes. */
export interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
}

/** On the map a line goes on where the date line is: its longitudes do not jump from one end of the world to the other. */
export function shapeOf(line: Line): Shape {
  const points = new Float64Array(line.length);
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  let before: number | undefined;
  for (let i = 0; i < line.length; i += 2) {
    const { x: onMap, y } = project(line[i + 1] ?? 0, line[i] ?? 0);
    const x = before === undefined ? onMap : onMap - Math.round(onMap - before);
    before = x;
    points[i] = x;
    points[i + 1] = y;
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
  }
  return { points, box };
}

/** As `shapeOf`, of a line around an area. The one around Antarctica does not come back on the map; it is closed along the lower end. */
export function areaOf(ring: Line): Shape {
  const { points, box } = shapeOf(ring);
  const start = points[0] ?? 0;
  const end = points[points.length - 2] ?? 0;
  if (Math.abs(end - start) < 0.5) return { points, box };
  return { points: Float64Array.of(...points, end, 1, start, 1), box: { ...box, bottom: 1 } };
}

/** Which of the worlds side by side (0 is the first) may be seen; what crosses the date line reaches into the next. */
export function worldsIn({ left, width, scale }: Frame): number[] {
  const first = Math.floor(left) - 1;
  const last = Math.floor(left + width / scale) + 1;
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

export function isSeen({ left, top, right, bottom }: Box, world: number, frame: Frame): boolean {
  const { scale, width, height } = frame;
  return (
    (right + world - frame.left) * scale >= 0 &&
    (left + world - frame.left) * scale <= width &&
    (bottom - frame.top) * scale >= 0 &&
    (top - frame.top) * scale <= height
  );
}

/** Steps shorter than this are not seen. */
const SHORTEST_PX = 0.8;
/** Beyond the frame by this much, so that what is drawn along its edge stays out of sight. */
const MARGIN_PX = 4;

/**
 * Draws a line, leaving out what makes no difference: steps of less than a pixel, and points between two others that are all beyond
 * the same side of the frame. A line around an area still has the same area within the frame.
 */
export function trace({ points }: Shape, world: number, frame: Frame, pen: Pen): void {
  const { scale, left, top, width, height } = frame;
  let drawnX = 0;
  let drawnY = 0;
  let drawnSide = 0;
  // The last point that was left out; it is where a line comes from when it turns up again.
  let heldX = 0;
  let heldY = 0;
  let isHeld = false;
  for (let i = 0; i < points.length; i += 2) {
    const x = ((points[i] ?? 0) + world - left) * scale;
    const y = ((points[i + 1] ?? 0) - top) * scale;
    const side = x < -MARGIN_PX ? 1 : x > width + MARGIN_PX ? 2 : y < -MARGIN_PX ? 4 : y > height + MARGIN_PX ? 8 : 0;
    if (i === 0) {
      pen.moveTo(x, y);
    } else {
      const isSameSide = side !== 0 && side === drawnSide;
      const isShort = Math.abs(x - drawnX) < SHORTEST_PX && Math.abs(y - drawnY) < SHORTEST_PX;
      if (isSameSide || isShort) {
        heldX = x;
        heldY = y;
        isHeld = true;
        continue;
      }
      if (isHeld && drawnSide !== 0) pen.lineTo(heldX, heldY);
      pen.lineTo(x, y);
    }
    isHeld = false;
    drawnX = x;
    drawnY = y;
    drawnSide = side;
  }
  if (isHeld) pen.lineTo(heldX, heldY);
}
