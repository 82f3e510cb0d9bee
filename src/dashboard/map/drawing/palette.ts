import { colour } from "../../app/theme.ts";

/** The style sheet's colours for the map. They are looked up once, and again when they change. */
export interface Palette {
  water: string;
  land: string;
  border: string;
  label: string;
  surface: string;
  text: string;
  soft: string;
  accent: string;
  bad: string;
  /** Keyed by the result of `technologyColour`. */
  technology: Readonly<Record<string, string>>;
}

const TECHNOLOGIES = ["technology-5g", "technology-wifi", "technology-lifi", "technology-other"];

export const currentPalette = (): Palette => ({
  water: colour("map-water"),
  land: colour("map-land"),
  border: colour("map-border"),
  label: colour("map-label"),
  surface: colour("surface"),
  text: colour("text"),
  soft: colour("soft"),
  accent: colour("accent"),
  bad: colour("bad"),
  technology: Object.fromEntries(TECHNOLOGIES.map((name) => [name, colour(name)])),
});
