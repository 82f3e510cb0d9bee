import { observable } from "../lib/observable.ts";
import { getPreference, setPreference } from "../lib/preferences.ts";

/** Light, dark, or as the system has it. */
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

/** A colour of the style sheet, for what is drawn on a canvas. */
export function colour(name: string): string {
  // Only as the colour of something does it say which of light and dark it is.
  probe.style.color = `var(--${name})`;
  if (!probe.isConnected) document.documentElement.append(probe);
  return getComputedStyle(probe).color;
}

const probe = document.createElement("span");
probe.hidden = true;

/** Calls back when the colours change, by choice or with the system's. */
export function onColours(listener: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", listener);
  const end = theme.subscribe(() => setTimeout(listener));
  return () => {
    system.removeEventListener("change", listener);
    end();
  };
}
