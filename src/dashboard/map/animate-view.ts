import type { View } from "./view.ts";

const DURATION_MS = 250;

/** Returns the view at a share of the way between two others, the shorter way around the world. */
function between(from: View, to: View, share: number): View {
  const eased = 1 - (1 - share) ** 3;
  const dx = to.x - from.x - Math.round(to.x - from.x);
  return {
    x: from.x + dx * eased,
    y: from.y + (to.y - from.y) * eased,
    zoom: from.zoom + (to.zoom - from.zoom) * eased,
  };
}

/** Moves the view smoothly, or at once if the user prefers reduced motion. Returns a function that stops the animation. */
export function animateView(from: View, to: View, show: (view: View) => void): () => void {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    show(to);
    return () => {};
  }
  const startMs = performance.now();
  const step = (nowMs: number) => {
    const share = Math.min(1, Math.max(0, (nowMs - startMs) / DURATION_MS));
    show(share === 1 ? to : between(from, to, share));
    if (share < 1) frame = requestAnimationFrame(step);
  };
  let frame = requestAnimationFrame(step);
  return () => cancelAnimationFrame(frame);
}
