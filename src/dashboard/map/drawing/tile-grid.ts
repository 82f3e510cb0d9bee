import type { Frame } from "../view.ts";

/** An image of a tile server. At zoom z the world is 2^z tiles wide. */
export interface Tile {
  zoom: number;
  column: number;
  row: number;
}

/** A tile and its position on the screen. */
export interface PlacedTile extends Tile {
  x: number;
  y: number;
  sizePx: number;
}

const TILE_PX = 256;
const MAX_TILE_ZOOM = 19;

/** Returns the tiles that cover a frame. */
export function tilesFor({ left, top, width, height, scale }: Frame): PlacedTile[] {
  const zoom = Math.max(0, Math.min(MAX_TILE_ZOOM, Math.round(Math.log2(scale / TILE_PX))));
  const count = 2 ** zoom;
  const lastRow = Math.min(count - 1, Math.floor((top + height / scale) * count));
  const lastColumn = Math.floor((left + width / scale) * count);
  const tiles: PlacedTile[] = [];
  for (let row = Math.max(0, Math.floor(top * count)); row <= lastRow; row++) {
    for (let column = Math.floor(left * count); column <= lastColumn; column++) {
      const x = (column / count - left) * scale;
      const y = (row / count - top) * scale;
      // The map repeats: the first column follows the last.
      tiles.push({ zoom, column: ((column % count) + count) % count, row, x, y, sizePx: scale / count });
    }
  }
  return tiles;
}
