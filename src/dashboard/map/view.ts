import { groundWidthM, type WorldPoint } from "./projection.ts";

/** The centre of the visible map, and the zoom. At zoom 0 the world is 256 px wide; each level doubles all lengths. */
export interface View extends WorldPoint {
  zoom: number;
}

/** The size of the canvas in CSS pixels. */
export interface Size {
  width: number;
  height: number;
}

/** A view in a form suited for computing positions: `(x - left) * scale` is in pixels. */
export interface Frame extends Size {
  left: number;
  top: number;
  scale: number;
}

/** A rectangle of the world. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** At this zoom LiFi access points, which may be a few metres apart, are separate on the screen. */
export const MAX_ZOOM = 21;
/** The limit for `fitView`: at a higher zoom a single access point would be shown without the town around it. */
const MAX_FITTED_ZOOM = 12;
const WORLD_PX = 256;

export const scaleOf = (zoom: number): number => WORLD_PX * 2 ** zoom;
export const WHOLE_WORLD: View = { x: 0.5, y: 0.42, zoom: 0 };

export function frameOf(view: View, { width, height }: Size): Frame {
  const scale = scaleOf(view.zoom);
  return { width, height, scale, left: view.x - width / 2 / scale, top: view.y - height / 2 / scale };
}

/** Returns the x position in pixels. The map repeats to the east and west: uses the copy closest to the centre of the frame. */
export function screenX(x: number, { left, width, scale }: Frame): number {
  const fromCentre = x - left - width / 2 / scale;
  return (fromCentre - Math.round(fromCentre)) * scale + width / 2;
}

export const screenY = (y: number, { top, scale }: Frame): number => (y - top) * scale;

/** Returns the closest allowed view: not wider than one world, and within its upper and lower edge. */
export function clampView(view: View, size: Size): View {
  const zoom = Math.min(MAX_ZOOM, Math.max(Math.log2(size.width / WORLD_PX), view.zoom));
  const halfHeight = Math.min(0.5, size.height / 2 / scaleOf(zoom));
  return {
    zoom,
    x: view.x - Math.floor(view.x),
    y: Math.min(1 - halfHeight, Math.max(halfHeight, view.y)),
  };
}

/** Returns the view after a drag by this many pixels. */
export function panView(view: View, dx: number, dy: number, size: Size): View {
  const scale = scaleOf(view.zoom);
  return clampView({ ...view, x: view.x - dx / scale, y: view.y - dy / scale }, size);
}

/** Returns the view after zooming by a number of levels. The point of the map at the screen position `at` stays there. */
export function zoomViewAt(view: View, levels: number, at: { x: number; y: number }, size: Size): View {
  const zoom = clampView({ ...view, zoom: view.zoom + levels }, size).zoom;
  const shift = 1 / scaleOf(view.zoom) - 1 / scaleOf(zoom);
  const x = view.x + (at.x - size.width / 2) * shift;
  const y = view.y + (at.y - size.height / 2) * shift;
  return clampView({ x, y, zoom }, size);
}

/** Returns the view with the highest zoom that shows a whole rectangle of the world. */
export function fitView(box: Box, size: Size, maxZoom = MAX_FITTED_ZOOM): View {
  const margin = Math.min(48, size.width / 6, size.height / 6);
  const zoomFor = (extent: number, px: number) => Math.log2((px - 2 * margin) / WORLD_PX / Math.max(extent, 1e-12));
  const zoom = Math.min(maxZoom, zoomFor(box.right - box.left, size.width), zoomFor(box.bottom - box.top, size.height));
  return clampView({ x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2, zoom }, size);
}

/** Returns the smallest rectangle that contains all points. It may cross the date line. */
export function boundsOf(points: readonly WorldPoint[]): Box | undefined {
  const [first] = points;
  if (first === undefined) return undefined;
  const xs = Float64Array.from(points, ({ x }) => x).sort();
  // The rectangle is everything outside the widest gap between neighbouring points.
  let left = xs[0] ?? 0;
  let right = xs[xs.length - 1] ?? 0;
  let widest = left + 1 - right;
  for (let i = 1; i < xs.length; i++) {
    const before = xs[i - 1] ?? 0;
    const here = xs[i] ?? 0;
    if (here - before <= widest) continue;
    widest = here - before;
    left = here;
    right = before + 1;
  }
  let top = first.y;
  let bottom = first.y;
  for (const { y } of points) {
    if (y < top) top = y;
    if (y > bottom) bottom = y;
  }
  return { left, right, top, bottom };
}

/** A bar that stands for a round length on the ground. */
export interface ScaleBar {
  widthPx: number;
  text: string;
}

/** Returns the longest scale bar that fits into `maxPx`. */
export function scaleBarFor({ top, height, scale }: Frame, maxPx: number): ScaleBar {
  const metresPerPx = groundWidthM(top + height / 2 / scale) / scale;
  const maxM = maxPx * metresPerPx;
  const power = 10 ** Math.floor(Math.log10(maxM));
  const lengthM = ([5, 2].find((factor) => factor * power <= maxM) ?? 1) * power;
  return { widthPx: lengthM / metresPerPx, text: lengthM >= 1_000 ? `${lengthM / 1_000} km` : `${lengthM} m` };
}
