import { onColours } from "../app/theme.ts";
import { clustersOf } from "./clusters.ts";
import { drawBackdrop } from "./drawing/backdrop.ts";
import { drawMark, drawSelection, type Mark, radiusOf } from "./drawing/marks.ts";
import { currentPalette } from "./drawing/palette.ts";
import { TileLayer } from "./drawing/tiles.ts";
import type { At } from "./gestures.ts";
import { glide } from "./glide.ts";
import type { Spot } from "./spots.ts";
import {
  boxOf,
  fitted,
  frameOf,
  MAX_ZOOM,
  panned,
  type Size,
  type View,
  WHOLE_WORLD,
  within,
  zoomedAt,
} from "./view.ts";

/** Beside a mark, fingers mean it too. */
const REACH_PX = 5;

/** A canvas with a map on it, drawn when something has changed and at most once a frame. */
export class Scene {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #resizes: ResizeObserver;
  readonly #endColours: () => void;
  readonly #font: string;
  #palette = currentPalette();
  #size: Size = { width: 0, height: 0 };
  #view: View = WHOLE_WORLD;
  #spots: readonly Spot[] = [];
  #selected: string | undefined;
  #tiles: TileLayer | undefined;
  /** Those of the view; none when something has changed since. */
  #marks: readonly Mark[] | undefined;
  #hasFitted = false;
  #frame: number | undefined;
  #endGlide = () => {};

  constructor(canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d", { alpha: false });
    if (context === null) throw new Error("This browser draws nothing on a canvas.");
    this.#canvas = canvas;
    this.#context = context;
    this.#font = getComputedStyle(canvas).fontFamily;
    this.#endColours = onColours(() => {
      this.#palette = currentPalette();
      this.#redraw();
    });
    this.#resizes = new ResizeObserver(() => this.#resize());
    this.#resizes.observe(canvas);
  }

  end(): void {
    this.#resizes.disconnect();
    this.#endColours();
    this.#endGlide();
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
  }

  show(spots: readonly Spot[], selected: string | undefined): void {
    this.#spots = spots;
    this.#selected = selected;
    this.#marks = undefined;
    this.#fitOnce();
    this.#redraw();
  }

  useTiles(address: string | undefined): void {
    this.#tiles = address === undefined ? undefined : new TileLayer(address, () => this.#redraw());
    this.#redraw();
  }

  pan(dx: number, dy: number): void {
    this.#look(panned(this.#view, dx, dy, this.#size));
  }

  zoom(steps: number, at: At = { x: this.#size.width / 2, y: this.#size.height / 2 }): void {
    this.#look(zoomedAt(this.#view, steps, at, this.#size));
  }

  showAll(): void {
    this.#glideTo(this.#fittedTo(this.#spots) ?? within(WHOLE_WORLD, this.#size));
  }

  /** Nearer, until these are apart; false where they never are. */
  separate({ members }: Mark): boolean {
    const apart = this.#fittedTo(members, MAX_ZOOM);
    if (apart === undefined || clustersOf(members, frameOf({ ...apart, zoom: MAX_ZOOM }, this.#size)).length === 1)
      return false;
    this.#glideTo(apart);
    return true;
  }

  markAt({ x, y }: At): Mark | undefined {
    return this.#currentMarks().findLast((mark) => Math.hypot(mark.x - x, mark.y - y) <= radiusOf(mark) + REACH_PX);
  }

  #fittedTo(spots: readonly Spot[], nearest?: number): View | undefined {
    const box = boxOf(spots);
    return box === undefined ? undefined : fitted(box, this.#size, nearest);
  }

  /** At the beginning everything is shown; from then on the map stays where the person has put it. */
  #fitOnce(): void {
    if (this.#hasFitted || this.#size.width === 0 || this.#size.height === 0) return;
    const view = this.#fittedTo(this.#spots);
    this.#hasFitted = view !== undefined;
    this.#view = view ?? within(WHOLE_WORLD, this.#size);
    this.#marks = undefined;
  }

  #resize(): void {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (width === 0 || height === 0) return;
    this.#size = { width, height };
    this.#look(this.#view);
    this.#fitOnce();
    // A canvas is empty when its size has changed; at the next frame one would see it.
    this.#draw();
  }

  #glideTo(view: View): void {
    this.#endGlide();
    this.#endGlide = glide(this.#view, view, (step) => this.#set(step));
  }

  /** Where a person wants to look ends what moves by itself. */
  #look(view: View): void {
    this.#endGlide();
    this.#set(view);
  }

  #set(view: View): void {
    this.#view = within(view, this.#size);
    this.#marks = undefined;
    this.#redraw();
  }

  #currentMarks(): readonly Mark[] {
    this.#marks ??= clustersOf(this.#spots, frameOf(this.#view, this.#size));
    return this.#marks;
  }

  #redraw(): void {
    this.#frame ??= requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    const { width, height } = this.#size;
    if (width === 0) return;
    const density = devicePixelRatio;
    const [pixelWidth, pixelHeight] = [Math.round(width * density), Math.round(height * density)];
    if (this.#canvas.width !== pixelWidth) this.#canvas.width = pixelWidth;
    if (this.#canvas.height !== pixelHeight) this.#canvas.height = pixelHeight;
    this.#context.setTransform(density, 0, 0, density, 0, 0);

    const marks = this.#currentMarks();
    drawBackdrop({
      context: this.#context,
      frame: frameOf(this.#view, this.#size),
      zoom: this.#view.zoom,
      palette: this.#palette,
      font: this.#font,
      tiles: this.#tiles,
      taken: marks.map(rectangleOf),
      onMore: this.#onMore,
    });
    for (const mark of marks) {
      drawMark(this.#context, mark, this.#palette, this.#font);
      if (mark.members.some(({ accessPoint }) => accessPoint.ap_id === this.#selected))
        drawSelection(this.#context, mark, this.#palette);
    }
  }

  /** One and the same, so that whoever waits for something waits once. */
  readonly #onMore = () => this.#redraw();
}

function rectangleOf(mark: Mark) {
  const radius = radiusOf(mark);
  return { left: mark.x - radius, right: mark.x + radius, top: mark.y - radius, bottom: mark.y + radius };
}
