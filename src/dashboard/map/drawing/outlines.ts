import fineAddress from "world-atlas/countries-50m.json?url";
import coarseAddress from "world-atlas/countries-110m.json?url";
import { lazy } from "../lazy.ts";
import { lineOf, ringsOf, type Topology } from "../topology.ts";
import { type Frame, scaleOf } from "../view.ts";
import { isVisible, ringShape, type Shape, shapeOf, traceShape, visibleWorlds } from "./shapes.ts";

/** Land and borders, from Natural Earth. */
interface Outlines {
  land: readonly Shape[];
  borders: readonly Shape[];
}

export interface OutlineColours {
  land: string;
  border: string;
}

/** From this scale the coarse outlines would look angular. */
const FINE_FROM_SCALE = scaleOf(4);

const coarse = lazy(() => load(coarseAddress));
const fine = lazy(() => load(fineAddress));

async function load(address: string): Promise<Outlines> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`outlines not loaded: status ${response.status}`);
  const topology = (await response.json()) as Topology;
  const lines = await mapInChunks(topology.arcs, lineOf(topology));
  const { land } = topology.objects;
  return {
    land: land === undefined ? [] : await mapInChunks(ringsOf(land, lines), ringShape),
    borders: await mapInChunks(lines, shapeOf),
  };
}

/** Draws the outlines that are loaded. Calls `onLoaded` when more are. */
export function drawOutlines(
  context: CanvasRenderingContext2D,
  frame: Frame,
  { land, border }: OutlineColours,
  onLoaded: () => void,
): void {
  const outlines = (frame.scale >= FINE_FROM_SCALE ? fine(onLoaded) : undefined) ?? coarse(onLoaded);
  if (outlines === undefined) return;
  const path = (shapes: readonly Shape[]) => {
    context.beginPath();
    for (const world of visibleWorlds(frame))
      for (const shape of shapes) if (isVisible(shape.box, world, frame)) traceShape(shape, world, frame, context);
  };
  path(outlines.land);
  context.fillStyle = land;
  context.fill("evenodd");
  path(outlines.borders);
  context.strokeStyle = border;
  context.lineWidth = 1;
  context.stroke();
}

/** Half a frame. */
const SLICE_MS = 8;

/** Works as `map`, but pauses every few milliseconds so that the user can drag the map meanwhile. */
async function mapInChunks<T, U>(items: readonly T[], convert: (item: T) => U): Promise<U[]> {
  const results: U[] = [];
  let untilMs = performance.now() + SLICE_MS;
  for (const item of items) {
    results.push(convert(item));
    if (performance.now() < untilMs) continue;
    await new Promise((resolve) => setTimeout(resolve));
    untilMs = performance.now() + SLICE_MS;
  }
  return results;
}
