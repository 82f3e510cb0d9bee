import type { Frame } from "../view.ts";

/** One picture of a tile server's: at zoom z the world is 2^z of them wide. */
export interface Tile {
  zoom: number;
  column: number;
  row: number;
}

/** Where on the screen it is drawn. */
export interface PlacedTile extends Tile {
  x: number;
  y: number;
  sizePx: number;
}

const TILE_PX = 256;
const MAX_TILE_ZOOM = 19;

/** The tiles that cover a frame. */
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
      // East of the last column comes the first again.
      tiles.push({ zoom, column: ((column % count) + count) % count, row, x, y, sizePx: scale / count });
    }
  }
  return tiles;
}
