/** A place on the canvas, in pixels from its upper left corner. */
export interface At {
  x: number;
  y: number;
}

/** What people do with a map, however they do it. */
export interface Gestures {
  pan(dx: number, dy: number): void;
  /** Nearer by so many steps; without a place, at the middle. */
  zoom(steps: number, at?: At): void;
  /** Pointing at it; nothing when no longer. */
  hover(at: At | undefined): void;
  /** A click or a tap. */
  press(at: At): void;
}

/** A hand is not still: less than this is no drag. */
const DRAG_FROM_PX = 4;
const ARROW_PX = 80;
const ARROWS: Record<string, readonly [dx: number, dy: number]> = {
  ArrowLeft: [ARROW_PX, 0],
  ArrowRight: [-ARROW_PX, 0],
  ArrowUp: [0, ARROW_PX],
  ArrowDown: [0, -ARROW_PX],
};
const ZOOM_KEYS: Record<string, number> = { "+": 1, "=": 1, "-": -1, _: -1 };

/** Mouse, fingers, wheel and keys on a canvas. The answer ends it. */
export function followGestures(canvas: HTMLCanvasElement, gestures: Gestures): () => void {
  const ending = new AbortController();
  const { signal } = ending;
  const fingers = new Map<number, At>();
  let isDrag = false;
  let downAt: At = { x: 0, y: 0 };

  canvas.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, at(event));
      isDrag = fingers.size > 1;
      downAt = at(event);
    },
    { signal },
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
      const now = at(event);
      const before = fingers.get(event.pointerId);
      if (before === undefined) return gestures.hover(now);
      if (!isDrag && distance(downAt, now) < DRAG_FROM_PX) return;
      isDrag = true;
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      fingers.set(event.pointerId, now);
      if (other === undefined) return gestures.pan(now.x - before.x, now.y - before.y);
      // Of two fingers one has moved: the map follows the middle of both, and their distance.
      gestures.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
      const ratio = Math.max(1, distance(other, now)) / Math.max(1, distance(other, before));
      gestures.zoom(Math.log2(ratio), { x: (other.x + now.x) / 2, y: (other.y + now.y) / 2 });
    },
    { signal },
  );
  canvas.addEventListener(
    "pointerup",
    (event) => {
      if (fingers.delete(event.pointerId) && !isDrag) gestures.press(at(event));
    },
    { signal },
  );
  canvas.addEventListener("pointercancel", ({ pointerId }) => fingers.delete(pointerId), { signal });
  canvas.addEventListener("pointerleave", () => gestures.hover(undefined), { signal });
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : 30);
      // Two fingers on a touchpad come as a wheel with the control key, in much smaller steps.
      const steps = -pixels / (event.ctrlKey ? 60 : 250);
      gestures.zoom(Math.max(-1, Math.min(1, steps)), at(event));
    },
    { signal, passive: false },
  );
  canvas.addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const arrow = ARROWS[event.key];
      const steps = ZOOM_KEYS[event.key];
      if (arrow === undefined && steps === undefined) return;
      event.preventDefault();
      if (arrow !== undefined) gestures.pan(...arrow);
      if (steps !== undefined) gestures.zoom(steps);
    },
    { signal },
  );
  return () => ending.abort();
}

const at = ({ offsetX, offsetY }: MouseEvent): At => ({ x: offsetX, y: offsetY });
const distance = (one: At, other: At): number => Math.hypot(one.x - other.x, one.y - other.y);
