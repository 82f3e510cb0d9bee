import type { AccessPointState } from "../../../schemas/fleet/overview.ts";
import {
  type AccessPointCondition,
  conditionOf,
  technologyColour,
  technologyLetter,
} from "../../components/badges.tsx";
import type { Cluster } from "../clusters.ts";
import { project, type WorldPoint } from "../projection.ts";
import type { Palette } from "./palette.ts";

/** An access point and its position on the map. */
export interface MapPoint extends WorldPoint {
  accessPoint: AccessPointState;
  condition: AccessPointCondition;
}

/** Returns the access points whose position is known. */
export function mapPointsOf(accessPoints: readonly AccessPointState[]): MapPoint[] {
  const points: MapPoint[] = [];
  for (const accessPoint of accessPoints) {
    const { latitude, longitude } = accessPoint;
    if (latitude === null || longitude === null) continue;
    points.push({ ...project(latitude, longitude), accessPoint, condition: conditionOf(accessPoint) });
  }
  return points;
}

/**
 * Stands for one or several access points. A letter and a colour show the technology, the shape shows the condition: a filled disc is
 * online, an empty diamond offline, an empty circle new. A cluster is a disc with its count, in a ring of the shares of each kind.
 */
export type Marker = Cluster<MapPoint>;

const POINT_RADIUS_PX = 9;
const RING_PX = 5;
const TURN = 2 * Math.PI;

export function radiusOf({ members }: Marker): number {
  return members.length === 1 ? POINT_RADIUS_PX : 13 + 2.3 * Math.log10(members.length);
}

export function drawMarker(context: CanvasRenderingContext2D, marker: Marker, palette: Palette, font: string): void {
  const [only] = marker.members;
  context.textAlign = "center";
  context.textBaseline = "middle";
  if (marker.members.length > 1) drawCluster(context, marker, palette, font);
  else if (only !== undefined) drawPoint(context, marker, only, palette, font);
}

/** Draws a ring around the selected access point. */
export function drawSelection(context: CanvasRenderingContext2D, marker: Marker, { accent }: Palette): void {
  context.beginPath();
  context.arc(marker.x, marker.y, radiusOf(marker) + 5, 0, TURN);
  context.lineWidth = 3;
  context.strokeStyle = accent;
  context.stroke();
}

function drawPoint(
  context: CanvasRenderingContext2D,
  { x, y }: Marker,
  { accessPoint, condition }: MapPoint,
  palette: Palette,
  font: string,
): void {
  const fill = palette.technology[technologyColour(accessPoint.access_point_type)] ?? palette.soft;
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
  context.fillStyle = isOnline ? fill : palette.surface;
  context.fill();
  context.lineWidth = isOnline ? 1.5 : 2;
  context.strokeStyle = line;
  context.stroke();
  context.fillStyle = isOnline ? palette.surface : line;
  context.font = `700 10px ${font}`;
  context.fillText(technologyLetter(accessPoint.access_point_type), x, y + 0.5);
}

function drawCluster(context: CanvasRenderingContext2D, marker: Marker, palette: Palette, font: string): void {
  const { x, y, members } = marker;
  const radius = radiusOf(marker);
  context.beginPath();
  context.arc(x, y, radius, 0, TURN);
  context.fillStyle = palette.surface;
  context.fill();
  context.lineWidth = RING_PX;
  let from = -TURN / 4;
  for (const [kind, count] of countsByKind(members)) {
    const to = from + (TURN * count) / members.length;
    context.beginPath();
    context.arc(x, y, radius - RING_PX / 2, from, to);
    context.strokeStyle =
      kind === "offline" ? palette.bad : kind === "new" ? palette.soft : (palette.technology[kind] ?? palette.soft);
    context.stroke();
    from = to;
  }
  context.fillStyle = palette.text;
  context.font = `600 11px ${font}`;
  context.fillText(shortCount(members.length), x, y + 0.5);
}

/** Counts the online access points of each technology, and the others by condition. The order is always the same. */
function countsByKind(members: readonly MapPoint[]): [kind: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { accessPoint, condition } of members) {
    const kind = condition === "online" ? technologyColour(accessPoint.access_point_type) : condition;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return [...counts].sort(([a], [b]) => (a < b ? 1 : -1));
}

/** Returns a count of at most five characters: "12.3k". */
const shortCount = (count: number): string => (count < 1_000 ? `${count}` : `${Math.round(count / 100) / 10}k`);
