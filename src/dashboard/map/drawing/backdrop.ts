import { GRID_FROM_ZOOM, traceGrid } from "../grid.ts";
import { towns } from "../towns.ts";
import type { Frame } from "../view.ts";
import { LABELS_FROM_ZOOM, labelsFor, type Rectangle } from "./labels.ts";
import { drawOutlines } from "./outlines.ts";
import type { Palette } from "./palette.ts";
import { scaleBarFor } from "./scale-bar.ts";
import type { TileLayer } from "./tiles.ts";

/** What lies beneath the access points: pictures of a tile server, or outlines of our own with the names of towns. */
export interface Backdrop {
  context: CanvasRenderingContext2D;
  frame: Frame;
  zoom: number;
  palette: Palette;
  font: string;
  tiles: TileLayer | undefined;
  /** Where access points will be drawn: no name goes there. */
  taken: readonly Rectangle[];
  /** There is more to draw than there was. */
  onMore: () => void;
}

export function drawBackdrop({ context, frame, zoom, palette, font, tiles, taken, onMore }: Backdrop): void {
  context.fillStyle = palette.water;
  context.fillRect(0, 0, frame.width, frame.height);
  if (tiles !== undefined && !tiles.isUseless) {
    tiles.draw(context, frame);
  } else {
    drawOutlines(context, frame, palette, onMore);
    if (zoom >= GRID_FROM_ZOOM) drawGrid(context, frame, palette);
    if (zoom >= LABELS_FROM_ZOOM) drawTowns(context, frame, zoom, palette, font, taken, onMore);
  }
  drawScaleBar(context, frame, palette, font);
}

function drawGrid(context: CanvasRenderingContext2D, frame: Frame, { border }: Palette): void {
  context.beginPath();
  traceGrid(frame, context);
  context.globalAlpha = 0.35;
  context.strokeStyle = border;
  context.lineWidth = 1;
  context.stroke();
  context.globalAlpha = 1;
}

/** Measuring a text costs more than drawing it. */
const widths = new Map<string, number>();

function drawTowns(
  context: CanvasRenderingContext2D,
  frame: Frame,
  zoom: number,
  { label, land }: Palette,
  font: string,
  taken: readonly Rectangle[],
  onMore: () => void,
): void {
  context.font = `12px ${font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = land;
  context.fillStyle = label;
  const widthOf = (text: string) => {
    const width = widths.get(text) ?? context.measureText(text).width;
    widths.set(text, width);
    return width;
  };
  for (const { text, x, y, townX, townY } of labelsFor(towns(onMore) ?? [], zoom, frame, widthOf, taken)) {
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
  // Light around dark, or dark around light: it is read on anything.
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
