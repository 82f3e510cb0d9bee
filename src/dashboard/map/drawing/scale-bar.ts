import { groundWidthM } from "../projection.ts";
import type { Frame } from "../view.ts";

/** A length on the ground that is a round number, and how long it is on the screen. */
export interface ScaleBar {
  widthPx: number;
  text: string;
}

export function scaleBarFor({ top, height, scale }: Frame, maxPx: number): ScaleBar {
  const metresPerPx = groundWidthM(top + height / 2 / scale) / scale;
  const maxM = maxPx * metresPerPx;
  const power = 10 ** Math.floor(Math.log10(maxM));
  const lengthM = ([5, 2].find((factor) => factor * power <= maxM) ?? 1) * power;
  return { widthPx: lengthM / metresPerPx, text: lengthM >= 1_000 ? `${lengthM / 1_000} km` : `${lengthM} m` };
}
