import type { Technology } from "./access-point.ts";
import { clamp } from "./math.ts";

const DAY_MS = 86_400_000;
const DEGREES_PER_HOUR = 15;

/** Returns the mean solar time, 0 to 24. It is close to the local time and needs no table of time zones. */
export function localHour(nowMs: number, longitudeDeg: number): number {
  const hour = (nowMs / DAY_MS) * 24 + longitudeDeg / DEGREES_PER_HOUR;
  return ((hour % 24) + 24) % 24;
}

/** Average share of an access point's devices that are present at these hours. Interpolated smoothly between them. */
const CURVES: Record<Technology, readonly (readonly [hour: number, share: number])[]> = {
  // Commuters in the morning and the late afternoon.
  "5G": [
    [0, 0.18],
    [3.5, 0.08],
    [6, 0.22],
    [8.5, 0.72],
    [11, 0.58],
    [13, 0.66],
    [15, 0.6],
    [18, 0.88],
    [20.5, 0.72],
    [22.5, 0.4],
  ],
  // Work during the day, streaming in the evening.
  WiFi: [
    [0, 0.3],
    [4, 0.1],
    [7, 0.3],
    [10, 0.5],
    [14, 0.52],
    [17, 0.6],
    [20.5, 0.9],
    [22.5, 0.62],
  ],
  // Offices, shops and halls with the lights on.
  LiFi: [
    [0, 0.1],
    [4, 0.06],
    [7, 0.25],
    [9.5, 0.8],
    [12.5, 0.62],
    [14.5, 0.84],
    [17, 0.66],
    [20, 0.48],
    [22, 0.24],
  ],
};

/** Returns the average share of devices that are present at an hour of the day. */
export function dailyShare(technology: Technology, hour: number): number {
  const points = CURVES[technology];
  const index = points.findLastIndex(([at]) => at <= hour);
  const [fromHour, from] = points[index] ?? [0, 0];
  const [nextHour, to] = points[index + 1] ?? [24, points[0]?.[1] ?? from];
  const progress = clamp((hour - fromHour) / (nextHour - fromHour), 0, 1);
  return from + ((to - from) * (1 - Math.cos(Math.PI * progress))) / 2;
}

/** Returns the daylight, from 0 (night) to 1 (noon). */
export const daylight = (hour: number): number => Math.max(0, Math.sin(((hour - 6) / 12) * Math.PI));
