import { signal } from "@preact/signals";
import { getPreference, setPreference } from "../lib/browser.ts";

/** The colour scheme: light, dark, or the operating system's. */
export type Theme = "light" | "dark" | "system";

const KEY = "theme";
const stored = getPreference(KEY);

export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "system");

export function applyTheme(): void {
  document.documentElement.dataset.theme = theme.value;
}

export function chooseTheme(chosen: Theme): void {
  setPreference(KEY, chosen);
  theme.value = chosen;
  applyTheme();
}

/** Returns a colour of the style sheet in a form that a canvas accepts. */
export function colour(name: string): string {
  // `light-dark()` is resolved only in the computed colour of an element.
  probe.style.color = `var(--${name})`;
  if (!probe.isConnected) document.documentElement.append(probe);
  return getComputedStyle(probe).color;
}

const probe = document.createElement("span");
probe.hidden = true;

/** Calls back when the user or the operating system changes the colours. Returns a function that unsubscribes. */
export function onColoursChange(listener: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", listener);
  let known = theme.value;
  const unsubscribe = theme.subscribe((current) => {
    // `subscribe` also calls back at once.
    if (current !== known) setTimeout(listener);
    known = current;
  });
  return () => {
    system.removeEventListener("change", listener);
    unsubscribe();
  };
}
