/** A position on the canvas, in CSS pixels from its upper left corner. */
export interface ScreenPoint {
  x: number;
  y: number;
}

/** The actions of the user on a map, independent of the input device. */
export interface Gestures {
  pan(dx: number, dy: number): void;
  /** Zooms by a number of levels around a position, or around the centre. */
  zoom(levels: number, at?: ScreenPoint): void;
  /** Receives undefined when the pointer leaves the map. */
  hover(at: ScreenPoint | undefined): void;
  /** A click or a tap. */
  press(at: ScreenPoint): void;
}

/** Shorter movements count as a click: hands are not perfectly still. */
const MIN_DRAG_PX = 4;
const ARROW_PX = 80;
const ARROWS: Record<string, readonly [dx: number, dy: number]> = {
  ArrowLeft: [ARROW_PX, 0],
  ArrowRight: [-ARROW_PX, 0],
  ArrowUp: [0, ARROW_PX],
  ArrowDown: [0, -ARROW_PX],
};
const ZOOM_KEYS: Record<string, number> = { "+": 1, "=": 1, "-": -1, _: -1 };

/** Translates mouse, touch, wheel and key events of a canvas to gestures. Returns a function that stops it. */
export function trackGestures(canvas: HTMLCanvasElement, gestures: Gestures): () => void {
  const ending = new AbortController();
  const { signal } = ending;
  const pointers = new Map<number, ScreenPoint>();
  let isDrag = false;
  let downAt: ScreenPoint = { x: 0, y: 0 };

  canvas.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      isDrag = pointers.size > 1;
      downAt = at(event);
    },
    { signal },
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
      const now = at(event);
      const before = pointers.get(event.pointerId);
      if (before === undefined) return gestures.hover(now);
      if (!isDrag && distance(downAt, now) < MIN_DRAG_PX) return;
      isDrag = true;
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
      pointers.set(event.pointerId, now);
      if (other === undefined) return gestures.pan(now.x - before.x, now.y - before.y);
      // One of two fingers has moved: the map follows their midpoint and their distance.
      gestures.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
      const ratio = Math.max(1, distance(other, now)) / Math.max(1, distance(other, before));
      gestures.zoom(Math.log2(ratio), { x: (other.x + now.x) / 2, y: (other.y + now.y) / 2 });
    },
    { signal },
  );
  canvas.addEventListener(
    "pointerup",
    (event) => {
      if (pointers.delete(event.pointerId) && !isDrag) gestures.press(at(event));
    },
    { signal },
  );
  canvas.addEventListener("pointercancel", ({ pointerId }) => pointers.delete(pointerId), { signal });
  canvas.addEventListener("pointerleave", () => gestures.hover(undefined), { signal });
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : 30);
      // Browsers report a pinch on a touchpad as a wheel event with the control key, in much smaller steps.
      const levels = -pixels / (event.ctrlKey ? 60 : 250);
      gestures.zoom(Math.max(-1, Math.min(1, levels)), at(event));
    },
    { signal, passive: false },
  );
  canvas.addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const arrow = ARROWS[event.key];
      const levels = ZOOM_KEYS[event.key];
      if (arrow === undefined && levels === undefined) return;
      event.preventDefault();
      if (arrow !== undefined) gestures.pan(...arrow);
      if (levels !== undefined) gestures.zoom(levels);
    },
    { signal },
  );
  return () => ending.abort();
}

const at = ({ offsetX, offsetY }: MouseEvent): ScreenPoint => ({ x: offsetX, y: offsetY });
const distance = (a: ScreenPoint, b: ScreenPoint): number => Math.hypot(a.x - b.x, a.y - b.y);
