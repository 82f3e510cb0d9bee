import { project } from "../projection.ts";
import type { Box, Frame } from "../view.ts";

/** Points of longitude and latitude. */
export type Line = readonly (readonly number[])[];

/** A line on the map, and the box around it: lines outside the frame are skipped. */
export interface Shape {
  /** x and y, alternating. */
  points: Float64Array;
  box: Box;
}

/** The methods of a canvas context that draw lines. */
export interface LinePath {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
}

/** Projects a line. A line across the date line continues beyond the edge of the map instead of jumping to the other side. */
export function shapeOf(line: Line): Shape {
  const points = new Float64Array(2 * line.length);
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  let previousX: number | undefined;
  line.forEach(([longitude = 0, latitude = 0], i) => {
    const { x: projectedX, y } = project(latitude, longitude);
    const x = previousX === undefined ? projectedX : projectedX - Math.round(projectedX - previousX);
    previousX = x;
    points[2 * i] = x;
    points[2 * i + 1] = y;
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
  });
  return { points, box };
}

/** Projects the outline of an area. Antarctica's does not return to its start, so it is closed along the lower edge of the map. */
export function ringShape(ring: Line): Shape {
  const { points, box } = shapeOf(ring);
  const start = points[0] ?? 0;
  const end = points[points.length - 2] ?? 0;
  if (Math.abs(end - start) < 0.5) return { points, box };
  return { points: Float64Array.of(...points, end, 1, start, 1), box: { ...box, bottom: 1 } };
}

/** Returns the numbers of the visible copies of the world, including neighbours: shapes may cross the date line. */
export function visibleWorlds({ left, width, scale }: Frame): number[] {
  const first = Math.floor(left) - 1;
  const last = Math.floor(left + width / scale) + 1;
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

export function isVisible({ left, top, right, bottom }: Box, world: number, frame: Frame): boolean {
  const { scale, width, height } = frame;
  return (
    (right + world - frame.left) * scale >= 0 &&
    (left + world - frame.left) * scale <= width &&
    (bottom - frame.top) * scale >= 0 &&
    (top - frame.top) * scale <= height
  );
}

/** Shorter steps are not visible. */
const MIN_STEP_PX = 0.8;
/** Lines are cut this far outside the frame, so that the cut is not visible. */
const MARGIN_PX = 4;

/**
 * Draws a line without the points that make no difference: steps shorter than a pixel, and points whose neighbours are beyond the
 * same side of the frame. The outline of an area still covers the same pixels within the frame.
 */
export function traceShape({ points }: Shape, world: number, frame: Frame, path: LinePath): void {
  const { scale, left, top, width, height } = frame;
  let drawnX = 0;
  let drawnY = 0;
  let drawnSide = 0;
  // The last skipped point: the line continues from it when it enters the frame.
  let skippedX = 0;
  let skippedY = 0;
  let hasSkipped = false;
  for (let i = 0; i < points.length; i += 2) {
    const x = ((points[i] ?? 0) + world - left) * scale;
    const y = ((points[i + 1] ?? 0) - top) * scale;
    const side = x < -MARGIN_PX ? 1 : x > width + MARGIN_PX ? 2 : y < -MARGIN_PX ? 4 : y > height + MARGIN_PX ? 8 : 0;
    if (i === 0) {
      path.moveTo(x, y);
    } else {
      const isSameSide = side !== 0 && side === drawnSide;
      const isShort = Math.abs(x - drawnX) < MIN_STEP_PX && Math.abs(y - drawnY) < MIN_STEP_PX;
      if (isSameSide || isShort) {
        skippedX = x;
        skippedY = y;
        hasSkipped = true;
        continue;
      }
      if (hasSkipped && drawnSide !== 0) path.lineTo(skippedX, skippedY);
      path.lineTo(x, y);
    }
    hasSkipped = false;
    drawnX = x;
    drawnY = y;
    drawnSide = side;
  }
  if (hasSkipped) path.lineTo(skippedX, skippedY);
}
