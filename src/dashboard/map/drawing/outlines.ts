import { feature, transform } from "topojson-client";
import type { Topology } from "topojson-specification";
import fineAddress from "world-atlas/countries-50m.json?url";
import coarseAddress from "world-atlas/countries-110m.json?url";
import { lazy } from "../lazy.ts";
import { type Frame, scaleOf } from "../view.ts";
import { isVisible, type Line, ringShape, type Shape, shapeOf, traceShape, visibleWorlds } from "./shapes.ts";

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
  return {
    land: await mapInChunks(ringsOf(topology), ringShape),
    // Neighbouring areas share an arc, so drawing the arcs draws every border once.
    borders: await mapInChunks(topology.arcs, (arc) => shapeOf(decodeArc(topology, arc))),
  };
}

/** Returns the outlines of the land, including those of lakes. Takes about 2 ms for the fine outlines, so it needs no chunks. */
function ringsOf(topology: Topology): Line[] {
  const { land } = topology.objects;
  if (land === undefined) return [];
  const areas = feature(topology, land);
  return (areas.type === "FeatureCollection" ? areas.features : [areas]).flatMap(({ geometry }) =>
    geometry.type === "MultiPolygon"
      ? geometry.coordinates.flat()
      : geometry.type === "Polygon"
        ? geometry.coordinates
        : [],
  );
}

function decodeArc(topology: Topology, arc: Topology["arcs"][number]): Line {
  const decode = transform(topology.transform ?? null);
  return arc.map((point, i) => decode(point, i > 0));
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

/** Works like `map`, but pauses every few milliseconds so that the user can drag the map meanwhile. */
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
