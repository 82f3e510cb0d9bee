import { lazy } from "../lazy.ts";
import { project, unproject } from "../projection.ts";
import { type Frame, scaleBarFor, screenY } from "../view.ts";
import { drawOutlines } from "./outlines.ts";
import type { Palette } from "./palette.ts";
import type { TileLayer } from "./tiles.ts";
import { LABELS_FROM_ZOOM, placeLabels, type Rectangle, type Town } from "./town-labels.ts";

/** Everything beneath the markers: the images of a tile server, or outlines with the names of towns. */
export interface Backdrop {
  context: CanvasRenderingContext2D;
  frame: Frame;
  zoom: number;
  palette: Palette;
  font: string;
  tiles: TileLayer | undefined;
  /** The rectangles of the markers: names avoid them. */
  occupied: readonly Rectangle[];
  /** Called when there is more to draw. */
  onLoaded: () => void;
}

/** The world's largest towns from GeoNames, largest first. */
const towns = lazy<Town[]>(async () => {
  const { default: json } = await import("virtual:towns");
  const rows = JSON.parse(json) as [name: string, latitude: number, longitude: number][];
  return rows.map(([name, latitude, longitude]) => ({ name, ...project(latitude, longitude) }));
});

/** Within a town there are no outlines: from this zoom a grid shows movement and distance. */
const GRID_FROM_ZOOM = 8;
const MIN_GRID_STEP_PX = 120;
const GRID_STEPS_DEGREES = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];

export function drawBackdrop({ context, frame, zoom, palette, font, tiles, occupied, onLoaded }: Backdrop): void {
  context.fillStyle = palette.water;
  context.fillRect(0, 0, frame.width, frame.height);
  if (tiles !== undefined && !tiles.isUnavailable) {
    tiles.draw(context, frame);
  } else {
    drawOutlines(context, frame, palette, onLoaded);
    if (zoom >= GRID_FROM_ZOOM) drawGrid(context, frame, palette);
    if (zoom >= LABELS_FROM_ZOOM) drawTowns(context, frame, zoom, palette, font, occupied, onLoaded);
  }
  drawScaleBar(context, frame, palette, font);
}

/** Draws meridians and parallels. */
function drawGrid(context: CanvasRenderingContext2D, frame: Frame, { border }: Palette): void {
  const { left, top, width, height, scale } = frame;
  const step = GRID_STEPS_DEGREES.find((degrees) => (degrees / 360) * scale >= MIN_GRID_STEP_PX) ?? 1;
  const southWest = unproject({ x: left, y: top + height / scale });
  const northEast = unproject({ x: left + width / scale, y: top });
  context.beginPath();
  for (let i = Math.ceil(southWest.longitude / step); i * step <= northEast.longitude; i++) {
    const x = (project(0, i * step).x - left) * scale;
    context.moveTo(x, 0);
    context.lineTo(x, height);
  }
  for (let i = Math.ceil(southWest.latitude / step); i * step <= northEast.latitude; i++) {
    const y = screenY(project(i * step, 0).y, frame);
    context.moveTo(0, y);
    context.lineTo(width, y);
  }
  context.globalAlpha = 0.35;
  context.strokeStyle = border;
  context.lineWidth = 1;
  context.stroke();
  context.globalAlpha = 1;
}

/** Cached, since measuring a text takes longer than drawing it. */
const textWidths = new Map<string, number>();

function drawTowns(
  context: CanvasRenderingContext2D,
  frame: Frame,
  zoom: number,
  { label, land }: Palette,
  font: string,
  occupied: readonly Rectangle[],
  onLoaded: () => void,
): void {
  context.font = `12px ${font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = land;
  context.fillStyle = label;
  const widthOf = (text: string) => {
    const width = textWidths.get(text) ?? context.measureText(text).width;
    textWidths.set(text, width);
    return width;
  };
  for (const { text, x, y, townX, townY } of placeLabels(towns(onLoaded) ?? [], zoom, frame, widthOf, occupied)) {
    context.fillRect(townX - 1.5, townY - 1.5, 3, 3);
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  }
}

function drawScaleBar(context: CanvasRenderingContext2D, frame: Frame, { text, surface }: Palette, font: string): void {
  const bar = scaleBarFor(frame, Math.min(110, frame.width / 4));
  const [left, bottom] = [10.5, frame.height - 10.5];
  context.beginPath();
  context.moveTo(left, bottom - 5);
  context.lineTo(left, bottom);
  context.lineTo(left + bar.widthPx, bottom);
  context.lineTo(left + bar.widthPx, bottom - 5);
  context.font = `11px ${font}`;
  context.textAlign = "left";
  context.textBaseline = "bottom";
  // The outline in the opposite colour keeps the bar readable on any background.
  context.strokeStyle = surface;
  context.lineWidth = 3;
  context.stroke();
  context.strokeText(bar.text, left + 4, bottom - 2);
  context.strokeStyle = text;
  context.lineWidth = 1;
  context.stroke();
  context.fillStyle = text;
  context.fillText(bar.text, left + 4, bottom - 2);
}
