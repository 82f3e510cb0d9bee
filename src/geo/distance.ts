interface Position {
  latitude: number;
  longitude: number;
}

const EARTH_RADIUS_M = 6_371_009;
const radians = (degrees: number): number => (degrees * Math.PI) / 180;

/** Returns the distance along the Earth's surface, by the haversine formula. */
export function distanceM(a: Position, b: Position): number {
  const [latitudeA, latitudeB] = [radians(a.latitude), radians(b.latitude)];
  const sinLatitude = Math.sin((latitudeB - latitudeA) / 2);
  const sinLongitude = Math.sin(radians(b.longitude - a.longitude) / 2);
  const haversine = sinLatitude ** 2 + Math.cos(latitudeA) * Math.cos(latitudeB) * sinLongitude ** 2;
  return 2 * EARTH_RADIUS_M * Math.asin(Math.min(1, Math.sqrt(haversine)));
}
