import fineAddress from "world-atlas/countries-50m.json?url";
import coarseAddress from "world-atlas/countries-110m.json?url";
import { mapInChunks } from "../chunked.ts";
import { lazy } from "../lazy.ts";
import { lineOf, ringsOf, type Topology } from "../topology.ts";
import { type Frame, scaleOf } from "../view.ts";
import { areaOf, isSeen, type Shape, shapeOf, trace, worldsIn } from "./trace.ts";

/** Land and borders, from Natural Earth. */
interface Outlines {
  land: readonly Shape[];
  borders: readonly Shape[];
}

export interface OutlineColours {
  land: string;
  border: string;
}

/** From here on the coarse lines would look angular. */
const FINE_FROM_SCALE = scaleOf(4);

const coarse = lazy(() => load(coarseAddress));
const fine = lazy(() => load(fineAddress));

async function load(address: string): Promise<Outlines> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`No outlines: ${response.status}`);
  const topology = (await response.json()) as Topology;
  const lines = await mapInChunks(topology.arcs, lineOf(topology));
  const { land } = topology.objects;
  return {
    land: land === undefined ? [] : await mapInChunks(ringsOf(land, lines), areaOf),
    borders: await mapInChunks(lines, shapeOf),
  };
}

/** Draws what there is of them; `onMore` when there is more. */
export function drawOutlines(
  context: CanvasRenderingContext2D,
  frame: Frame,
  { land, border }: OutlineColours,
  onMore: () => void,
): void {
  const outlines = (frame.scale >= FINE_FROM_SCALE ? fine(onMore) : undefined) ?? coarse(onMore);
  if (outlines === undefined) return;
  const path = (shapes: readonly Shape[]) => {
    context.beginPath();
    for (const world of worldsIn(frame))
      for (const shape of shapes) if (isSeen(shape.box, world, frame)) trace(shape, world, frame, context);
  };
  path(outlines.land);
  context.fillStyle = land;
  context.fill("evenodd");
  path(outlines.borders);
  context.strokeStyle = border;
  context.lineWidth = 1;
  context.stroke();
}
