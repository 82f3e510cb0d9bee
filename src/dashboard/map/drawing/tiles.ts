import type { Frame } from "../view.ts";
import { type PlacedTile, type Tile, tilesFor } from "./tile-grid.ts";

/** About ten screens of them. */
const MAX_KEPT = 600;
/** How many steps up a larger picture is looked for while the right one is on its way. */
const MAX_STEPS_UP = 5;

/** Pictures of the map from a tile server, where the operator has named one: fetched as they are wanted, the latest kept. */
export class TileLayer {
  readonly #address: string;
  readonly #onMore: () => void;
  /** In the order of their last use. */
  readonly #images = new Map<string, HTMLImageElement>();
  #hasLoaded = false;
  #hasFailed = false;

  constructor(address: string, onMore: () => void) {
    this.#address = address;
    this.#onMore = onMore;
  }

  /** Nothing came but failures: the server is not there, and the map does without. */
  get isUseless(): boolean {
    return this.#hasFailed && !this.#hasLoaded;
  }

  draw(context: CanvasRenderingContext2D, frame: Frame): void {
    for (const tile of tilesFor(frame)) {
      if (!this.#drawPart(context, tile, tile, this.#image(tile))) this.#drawLarger(context, tile);
    }
  }

  /** The part of a picture of a wider view that shows the same. */
  #drawLarger(context: CanvasRenderingContext2D, tile: PlacedTile): void {
    for (let up = 1; up <= Math.min(MAX_STEPS_UP, tile.zoom); up++) {
      const larger = { zoom: tile.zoom - up, column: tile.column >> up, row: tile.row >> up };
      if (this.#drawPart(context, tile, larger, this.#images.get(addressOf(this.#address, larger)))) return;
    }
  }

  #drawPart(context: CanvasRenderingContext2D, tile: PlacedTile, from: Tile, image: HTMLImageElement | undefined) {
    if (!image?.complete || image.naturalWidth === 0) return false;
    const parts = 2 ** (tile.zoom - from.zoom);
    const side = image.naturalWidth / parts;
    const left = (tile.column - from.column * parts) * side;
    const top = (tile.row - from.row * parts) * side;
    // To whole pixels, or there would be fine lines between the tiles.
    const [x, y] = [Math.floor(tile.x), Math.floor(tile.y)];
    const width = Math.ceil(tile.x + tile.sizePx) - x;
    const height = Math.ceil(tile.y + tile.sizePx) - y;
    context.drawImage(image, left, top, side, side, x, y, width, height);
    return true;
  }

  #image(tile: Tile): HTMLImageElement {
    const address = addressOf(this.#address, tile);
    const known = this.#images.get(address);
    const image = known ?? this.#fetch(address);
    this.#images.delete(address);
    this.#images.set(address, image);
    const [oldest] = this.#images.keys();
    if (this.#images.size > MAX_KEPT && oldest !== undefined) this.#images.delete(oldest);
    return image;
  }

  #fetch(address: string): HTMLImageElement {
    const image = new Image();
    image.onload = () => {
      this.#hasLoaded = true;
      this.#onMore();
    };
    image.onerror = () => {
      this.#hasFailed = true;
      this.#onMore();
    };
    // Public tile servers refuse maps that do not say where they are shown.
    image.referrerPolicy = "strict-origin";
    image.src = address;
    return image;
  }
}

const addressOf = (address: string, { zoom, column, row }: Tile): string =>
  address.replace("{z}", `${zoom}`).replace("{x}", `${column}`).replace("{y}", `${row}`);
