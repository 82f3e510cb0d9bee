import type { WorldPoint } from "./projection.ts";

/** What of the world is looked at: its centre, and how near. Each step of zoom doubles all lengths; at 0 the world is 256 px wide. */
export interface View extends WorldPoint {
  zoom: number;
}

/** Of the canvas, in CSS pixels. */
export interface Size {
  width: number;
  height: number;
}

/** A view on a canvas, ready to be computed with: `(x - left) * scale` is where something is in pixels. */
export interface Frame extends Size {
  left: number;
  top: number;
  scale: number;
}

/** A part of the world. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** So near that access points a few metres apart, as those of LiFi are, stand apart on the screen. */
export const MAX_ZOOM = 21;
/** Nearer than this, one access point alone would be shown without a town around it. */
const MAX_FITTED_ZOOM = 12;
const WORLD_PX = 256;

export const scaleOf = (zoom: number): number => WORLD_PX * 2 ** zoom;
export const WHOLE_WORLD: View = { x: 0.5, y: 0.42, zoom: 0 };

export function frameOf(view: View, { width, height }: Size): Frame {
  const scale = scaleOf(view.zoom);
  return { width, height, scale, left: view.x - width / 2 / scale, top: view.y - height / 2 / scale };
}

/** East of the east comes the west again: where something is nearest to the middle of the frame. */
export function screenX(x: number, { left, width, scale }: Frame): number {
  const fromMiddle = x - left - width / 2 / scale;
  return (fromMiddle - Math.round(fromMiddle)) * scale + width / 2;
}

export const screenY = (y: number, { top, scale }: Frame): number => (y - top) * scale;

/** The nearest view that is allowed: never wider than one world, never beyond its upper and lower end. */
export function within(view: View, size: Size): View {
  const zoom = Math.min(MAX_ZOOM, Math.max(Math.log2(size.width / WORLD_PX), view.zoom));
  const halfHeight = Math.min(0.5, size.height / 2 / scaleOf(zoom));
  return {
    zoom,
    x: view.x - Math.floor(view.x),
    y: Math.min(1 - halfHeight, Math.max(halfHeight, view.y)),
  };
}

/** The map as if dragged by so many pixels. */
export function panned(view: View, dx: number, dy: number, size: Size): View {
  const scale = scaleOf(view.zoom);
  return within({ ...view, x: view.x - dx / scale, y: view.y - dy / scale }, size);
}

/** Nearer by so many steps; what is at this place of the screen stays there. */
export function zoomedAt(view: View, steps: number, at: { x: number; y: number }, size: Size): View {
  const zoom = within({ ...view, zoom: view.zoom + steps }, size).zoom;
  const shift = 1 / scaleOf(view.zoom) - 1 / scaleOf(zoom);
  const x = view.x + (at.x - size.width / 2) * shift;
  const y = view.y + (at.y - size.height / 2) * shift;
  return within({ x, y, zoom }, size);
}

/** The nearest view that shows all of a part of the world. */
export function fitted(box: Box, size: Size, nearest = MAX_FITTED_ZOOM): View {
  const margin = Math.min(48, size.width / 6, size.height / 6);
  const zoomFor = (extent: number, px: number) => Math.log2((px - 2 * margin) / WORLD_PX / Math.max(extent, 1e-12));
  const zoom = Math.min(nearest, zoomFor(box.right - box.left, size.width), zoomFor(box.bottom - box.top, size.height));
  return within({ x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2, zoom }, size);
}

/** The smallest part of the world with all these points, also where it lies across the date line. */
export function boxOf(points: readonly WorldPoint[]): Box | undefined {
  const [first] = points;
  if (first === undefined) return undefined;
  const xs = Float64Array.from(points, ({ x }) => x).sort();
  // What lies beyond the widest gap between neighbours is to the left of the box.
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
