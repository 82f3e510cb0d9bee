/** Web Mercator, the projection of web maps: the world is a square from 0 to 1, with x to the east and y to the south. */

export interface WorldPoint {
  x: number;
  y: number;
}

/** The edge of the square. The poles would be infinitely far away. */
const MAX_LATITUDE = 85.051129;
const EQUATOR_M = 40_075_016.686;

export function project(latitude: number, longitude: number): WorldPoint {
  const sine = Math.sin((Math.min(MAX_LATITUDE, Math.max(-MAX_LATITUDE, latitude)) * Math.PI) / 180);
  return { x: longitude / 360 + 0.5, y: 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI) };
}

export function unproject({ x, y }: WorldPoint): { latitude: number; longitude: number } {
  const latitude = (Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI;
  return { latitude, longitude: (x - 0.5) * 360 };
}

/** Returns the length on the ground of a line across the whole map at height y. It shrinks towards the poles. */
export function groundWidthM(y: number): number {
  return EQUATOR_M * Math.cos((unproject({ x: 0, y }).latitude * Math.PI) / 180);
}
