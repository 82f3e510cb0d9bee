import { onColoursChange } from "../app/theme.ts";
import { animateView } from "./animate-view.ts";
import { clustersOf } from "./clusters.ts";
import { drawBackdrop } from "./drawing/backdrop.ts";
import { drawMarker, drawSelection, type MapPoint, type Marker, radiusOf } from "./drawing/markers.ts";
import { currentPalette } from "./drawing/palette.ts";
import { TileLayer } from "./drawing/tiles.ts";
import type { ScreenPoint } from "./gestures.ts";
import {
  boundsOf,
  clampView,
  fitView,
  frameOf,
  MAX_ZOOM,
  panView,
  type Size,
  type View,
  WHOLE_WORLD,
  zoomViewAt,
} from "./view.ts";

/** Markers also react this far from their edge, for touch screens. */
const TOUCH_MARGIN_PX = 5;

/** Draws the map on a canvas: after changes only, and at most once a frame. */
export class MapCanvas {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #resizeObserver: ResizeObserver;
  readonly #stopColours: () => void;
  readonly #font: string;
  #palette = currentPalette();
  #size: Size = { width: 0, height: 0 };
  #view: View = WHOLE_WORLD;
  #points: readonly MapPoint[] = [];
  #selected: string | undefined;
  #tiles: TileLayer | undefined;
  /** The markers of the current view; undefined after a change. */
  #markers: readonly Marker[] | undefined;
  #hasFitted = false;
  #frame: number | undefined;
  #stopAnimation = () => {};

  constructor(canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d", { alpha: false });
    if (context === null)
      throw new Error("This browser does not support drawing on a canvas. Use another browser to see the map.");
    this.#canvas = canvas;
    this.#context = context;
    this.#font = getComputedStyle(canvas).fontFamily;
    this.#stopColours = onColoursChange(() => {
      this.#palette = currentPalette();
      this.#redraw();
    });
    this.#resizeObserver = new ResizeObserver(() => this.#resize());
    this.#resizeObserver.observe(canvas);
  }

  end(): void {
    this.#resizeObserver.disconnect();
    this.#stopColours();
    this.#stopAnimation();
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
  }

  show(points: readonly MapPoint[], selected: string | undefined): void {
    this.#points = points;
    this.#selected = selected;
    this.#markers = undefined;
    this.#fitOnce();
    this.#redraw();
  }

  useTiles(address: string | undefined): void {
    this.#tiles = address === undefined ? undefined : new TileLayer(address, this.#onLoaded);
    this.#redraw();
  }

  pan(dx: number, dy: number): void {
    this.#moveTo(panView(this.#view, dx, dy, this.#size));
  }

  zoom(levels: number, at: ScreenPoint = { x: this.#size.width / 2, y: this.#size.height / 2 }): void {
    this.#moveTo(zoomViewAt(this.#view, levels, at, this.#size));
  }

  showAll(): void {
    this.#animateTo(this.#viewOf(this.#points) ?? clampView(WHOLE_WORLD, this.#size));
  }

  /** Zooms in until the members of a cluster are separate. Returns false if no zoom separates them. */
  zoomToSeparate({ members }: Marker): boolean {
    const view = this.#viewOf(members, MAX_ZOOM);
    if (view === undefined || clustersOf(members, frameOf({ ...view, zoom: MAX_ZOOM }, this.#size)).length === 1)
      return false;
    this.#animateTo(view);
    return true;
  }

  markerAt({ x, y }: ScreenPoint): Marker | undefined {
    return this.#currentMarkers().findLast(
      (marker) => Math.hypot(marker.x - x, marker.y - y) <= radiusOf(marker) + TOUCH_MARGIN_PX,
    );
  }

  #viewOf(points: readonly MapPoint[], maxZoom?: number): View | undefined {
    const box = boundsOf(points);
    return box === undefined ? undefined : fitView(box, this.#size, maxZoom);
  }

  /** Shows all points at the beginning. From then on only the user moves the map. */
  #fitOnce(): void {
    if (this.#hasFitted || this.#size.width === 0 || this.#size.height === 0) return;
    const view = this.#viewOf(this.#points);
    this.#hasFitted = view !== undefined;
    this.#view = view ?? clampView(WHOLE_WORLD, this.#size);
    this.#markers = undefined;
  }

  #resize(): void {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (width === 0 || height === 0) return;
    this.#size = { width, height };
    this.#moveTo(this.#view);
    this.#fitOnce();
    // Resizing clears a canvas: waiting for the next frame would make it flicker.
    this.#draw();
  }

  #animateTo(view: View): void {
    this.#stopAnimation();
    this.#stopAnimation = animateView(this.#view, view, (step) => this.#set(step));
  }

  /** Moves the map for the user, which ends a running animation. */
  #moveTo(view: View): void {
    this.#stopAnimation();
    this.#set(view);
  }

  #set(view: View): void {
    this.#view = clampView(view, this.#size);
    this.#markers = undefined;
    this.#redraw();
  }

  #currentMarkers(): readonly Marker[] {
    this.#markers ??= clustersOf(this.#points, frameOf(this.#view, this.#size));
    return this.#markers;
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

    const markers = this.#currentMarkers();
    drawBackdrop({
      context: this.#context,
      frame: frameOf(this.#view, this.#size),
      zoom: this.#view.zoom,
      palette: this.#palette,
      font: this.#font,
      tiles: this.#tiles,
      occupied: markers.map(rectangleOf),
      onLoaded: this.#onLoaded,
    });
    for (const marker of markers) {
      drawMarker(this.#context, marker, this.#palette, this.#font);
      if (marker.members.some(({ accessPoint }) => accessPoint.ap_id === this.#selected))
        drawSelection(this.#context, marker, this.#palette);
    }
  }

  /** One function for all calls, so that `lazy` registers it once. */
  readonly #onLoaded = () => this.#redraw();
}

function rectangleOf(marker: Marker) {
  const { x, y } = marker;
  const radius = radiusOf(marker);
  return { left: x - radius, right: x + radius, top: y - radius, bottom: y + radius };
}
