import type { Town } from "./drawing/labels.ts";
import { lazy } from "./lazy.ts";
import { project } from "./projection.ts";

/** The world's largest towns, largest first, from GeoNames. */
export const towns = lazy<Town[]>(async () => {
  const { default: json } = await import("virtual:towns");
  const rows = JSON.parse(json) as [name: string, latitude: number, longitude: number][];
  return rows.map(([name, latitude, longitude]) => ({ name, ...project(latitude, longitude) }));
});
