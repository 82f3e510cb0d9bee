import { observable } from "../lib/observable.ts";
import { getPreference, setPreference } from "../lib/preferences.ts";

/** The colour scheme: light, dark, or the operating system's. */
export type Theme = "light" | "dark" | "system";

const KEY = "theme";
const stored = getPreference(KEY);

export const theme = observable<Theme>(stored === "light" || stored === "dark" ? stored : "system");

export function applyTheme(): void {
  document.documentElement.dataset.theme = theme.get();
}

export function chooseTheme(chosen: Theme): void {
  setPreference(KEY, chosen);
  theme.set(chosen);
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
  const unsubscribe = theme.subscribe(() => setTimeout(listener));
  return () => {
    system.removeEventListener("change", listener);
    unsubscribe();
  };
}
