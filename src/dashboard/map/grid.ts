import type { Pen } from "./drawing/trace.ts";
import { project, unproject } from "./projection.ts";
import { type Frame, screenY } from "./view.ts";

/** Within one town there is no outline to be seen: meridians and parallels show that the map moves, and how far. */
export const GRID_FROM_ZOOM = 8;
const LEAST_PX = 120;
const STEPS_DEGREES = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];

export function traceGrid(frame: Frame, pen: Pen): void {
  const { left, top, width, height, scale } = frame;
  const step = STEPS_DEGREES.find((degrees) => (degrees / 360) * scale >= LEAST_PX) ?? 1;
  const first = unproject({ x: left, y: top + height / scale });
  const last = unproject({ x: left + width / scale, y: top });
  for (let i = Math.ceil(first.longitude / step); i * step <= last.longitude; i++) {
    const x = (project(0, i * step).x - left) * scale;
    pen.moveTo(x, 0);
    pen.lineTo(x, height);
  }
  for (let i = Math.ceil(first.latitude / step); i * step <= last.latitude; i++) {
    const y = screenY(project(i * step, 0).y, frame);
    pen.moveTo(0, y);
    pen.lineTo(width, y);
  }
}
