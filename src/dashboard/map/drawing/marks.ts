import { technologyColour } from "../../components/badges.tsx";
import type { Cluster } from "../clusters.ts";
import type { Spot } from "../spots.ts";
import type { Palette } from "./palette.ts";

/**
 * What stands for access points on the map. A letter and a colour tell the technology, the shape tells the state: a disc is online, an
 * empty diamond is offline, an empty circle was never heard of. Several are a disc with their number, in a ring of their shares.
 */
export type Mark = Cluster<Spot>;

const POINT_RADIUS_PX = 9;
const RING_PX = 5;
const TURN = 2 * Math.PI;

/** The first of its name; those that do not say what they are count as others. */
export const technologyLetter = (type: string | null): string => (type?.[0] ?? "O").toUpperCase();

export function radiusOf({ members }: Mark): number {
  return members.length === 1 ? POINT_RADIUS_PX : 13 + 2.3 * Math.log10(members.length);
}

export function drawMark(context: CanvasRenderingContext2D, mark: Mark, palette: Palette, font: string): void {
  const [only] = mark.members;
  context.textAlign = "center";
  context.textBaseline = "middle";
  if (mark.members.length > 1) drawCluster(context, mark, palette, font);
  else if (only !== undefined) drawPoint(context, mark, only, palette, font);
}

/** Around the one that the page is about. */
export function drawSelection(context: CanvasRenderingContext2D, mark: Mark, { accent }: Palette): void {
  context.beginPath();
  context.arc(mark.x, mark.y, radiusOf(mark) + 5, 0, TURN);
  context.lineWidth = 3;
  context.strokeStyle = accent;
  context.stroke();
}

function drawPoint(
  context: CanvasRenderingContext2D,
  { x, y }: Mark,
  { accessPoint, condition }: Spot,
  palette: Palette,
  font: string,
): void {
  const own = palette.technology[technologyColour(accessPoint.access_point_type)] ?? palette.soft;
  const isOnline = condition === "online";
  const line = isOnline ? palette.surface : condition === "offline" ? palette.bad : palette.soft;
  context.beginPath();
  if (condition === "offline") {
    const radius = POINT_RADIUS_PX + 2;
    context.moveTo(x, y - radius);
    context.lineTo(x + radius, y);
    context.lineTo(x, y + radius);
    context.lineTo(x - radius, y);
    context.closePath();
  } else {
    context.arc(x, y, POINT_RADIUS_PX, 0, TURN);
  }
  context.fillStyle = isOnline ? own : palette.surface;
  context.fill();
  context.lineWidth = isOnline ? 1.5 : 2;
  context.strokeStyle = line;
  context.stroke();
  context.fillStyle = isOnline ? palette.surface : line;
  context.font = `700 10px ${font}`;
  context.fillText(technologyLetter(accessPoint.access_point_type), x, y + 0.5);
}

function drawCluster(context: CanvasRenderingContext2D, mark: Mark, palette: Palette, font: string): void {
  const { x, y, members } = mark;
  const radius = radiusOf(mark);
  context.beginPath();
  context.arc(x, y, radius, 0, TURN);
  context.fillStyle = palette.surface;
  context.fill();
  context.lineWidth = RING_PX;
  let from = -TURN / 4;
  for (const [share, count] of sharesOf(members)) {
    const to = from + (TURN * count) / members.length;
    context.beginPath();
    context.arc(x, y, radius - RING_PX / 2, from, to);
    context.strokeStyle =
      share === "offline" ? palette.bad : share === "new" ? palette.soft : (palette.technology[share] ?? palette.soft);
    context.stroke();
    from = to;
  }
  context.fillStyle = palette.text;
  context.font = `600 11px ${font}`;
  context.fillText(countText(members.length), x, y + 0.5);
}

/** How many are online of each technology, then how many are not; always in the same order. */
function sharesOf(members: readonly Spot[]): [share: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { accessPoint, condition } of members) {
    const share = condition === "online" ? technologyColour(accessPoint.access_point_type) : condition;
    counts.set(share, (counts.get(share) ?? 0) + 1);
  }
  return [...counts].sort(([one], [other]) => (one < other ? 1 : -1));
}

const countText = (count: number): string => (count < 1_000 ? `${count}` : `${Math.round(count / 100) / 10}k`);
