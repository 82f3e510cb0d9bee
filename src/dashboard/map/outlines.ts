import fineAddress from "world-atlas/countries-50m.json?url";
import coarseAddress from "world-atlas/countries-110m.json?url";
import { lazily } from "./lazily.ts";
import { type Line, linesOf, ringsOf, type Topology } from "./topology.ts";
import { isSeen, type Shape, shapeOf, trace, worldsIn } from "./trace.ts";
import { type Frame, scaleOf } from "./view.ts";

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

const coarse = lazily(() => load(coarseAddress));
const fine = lazily(() => load(fineAddress));

async function load(address: string): Promise<Outlines> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`No outlines: ${response.status}`);
  const topology = (await response.json()) as Topology;
  const lines = linesOf(topology);
  const { land } = topology.objects;
  return {
    land: land === undefined ? [] : ringsOf(land, lines).map(shapeOf),
    borders: lines.flatMap(withoutSeams).map(shapeOf),
  };
}

/** The data is cut at the date line and at the south pole. The cuts are no borders. */
function withoutSeams(line: Line): Line[] {
  const parts: Line[] = [];
  let start = 0;
  for (let i = 2; i < line.length; i += 2) {
    if (!isAtEdge(line, i - 2) || !isAtEdge(line, i)) continue;
    if (i - start > 2) parts.push(line.subarray(start, i));
    start = i;
  }
  if (line.length - start > 2) parts.push(line.subarray(start));
  return parts;
}

const isAtEdge = (line: Line, i: number): boolean => Math.abs(line[i] ?? 0) > 179.99 || (line[i + 1] ?? 0) < -85;

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
