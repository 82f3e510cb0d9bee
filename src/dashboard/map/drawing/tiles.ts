import type { Frame } from "../view.ts";
import { type PlacedTile, type Tile, tilesFor } from "./tile-grid.ts";

/** About ten screens. */
const MAX_CACHED_IMAGES = 600;
/** How many zoom levels up to search for a substitute while a tile is loading. */
const MAX_LEVELS_UP = 5;

/** Draws the images of the operator's tile server. Loads them when they are first needed, and caches the latest. */
export class TileLayer {
  readonly #template: string;
  readonly #onLoaded: () => void;
  /** Least recently used first. */
  readonly #images = new Map<string, HTMLImageElement>();
  #hasLoaded = false;
  #hasFailed = false;

  constructor(template: string, onLoaded: () => void) {
    this.#template = template;
    this.#onLoaded = onLoaded;
  }

  /** Whether every request failed: the map then uses its own outlines. */
  get isUnavailable(): boolean {
    return this.#hasFailed && !this.#hasLoaded;
  }

  draw(context: CanvasRenderingContext2D, frame: Frame): void {
    for (const tile of tilesFor(frame)) {
      if (!this.#drawSection(context, tile, tile, this.#image(tile))) this.#drawSubstitute(context, tile);
    }
  }

  /** Draws the section of a cached tile with a lower zoom that shows the same area. */
  #drawSubstitute(context: CanvasRenderingContext2D, tile: PlacedTile): void {
    for (let up = 1; up <= Math.min(MAX_LEVELS_UP, tile.zoom); up++) {
      const larger = { zoom: tile.zoom - up, column: tile.column >> up, row: tile.row >> up };
      if (this.#drawSection(context, tile, larger, this.#images.get(addressOf(this.#template, larger)))) return;
    }
  }

  #drawSection(context: CanvasRenderingContext2D, tile: PlacedTile, from: Tile, image: HTMLImageElement | undefined) {
    if (!image?.complete || image.naturalWidth === 0) return false;
    const tilesAcross = 2 ** (tile.zoom - from.zoom);
    const side = image.naturalWidth / tilesAcross;
    const left = (tile.column - from.column * tilesAcross) * side;
    const top = (tile.row - from.row * tilesAcross) * side;
    // Without rounding to whole pixels there would be thin lines between the tiles.
    const [x, y] = [Math.floor(tile.x), Math.floor(tile.y)];
    const width = Math.ceil(tile.x + tile.sizePx) - x;
    const height = Math.ceil(tile.y + tile.sizePx) - y;
    context.drawImage(image, left, top, side, side, x, y, width, height);
    return true;
  }

  #image(tile: Tile): HTMLImageElement {
    const address = addressOf(this.#template, tile);
    const cached = this.#images.get(address);
    const image = cached ?? this.#load(address);
    this.#images.delete(address);
    this.#images.set(address, image);
    const [oldest] = this.#images.keys();
    if (this.#images.size > MAX_CACHED_IMAGES && oldest !== undefined) this.#images.delete(oldest);
    return image;
  }

  #load(address: string): HTMLImageElement {
    const image = new Image();
    image.onload = () => {
      this.#hasLoaded = true;
      this.#onLoaded();
    };
    image.onerror = () => {
      this.#hasFailed = true;
      this.#onLoaded();
    };
    // Public tile servers reject requests without a referrer.
    image.referrerPolicy = "strict-origin";
    image.src = address;
    return image;
  }
}

const addressOf = (template: string, { zoom, column, row }: Tile): string =>
  template.replace("{z}", `${zoom}`).replace("{x}", `${column}`).replace("{y}", `${row}`);
