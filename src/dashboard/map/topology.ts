/** TopoJSON: stores the lines between areas once, as differences of integers. An area refers to its lines by index. */

export interface Topology {
  transform: { scale: readonly number[]; translate: readonly number[] };
  /** Lines. Each point is the difference to the point before it. */
  arcs: readonly (readonly (readonly number[])[])[];
  objects: Readonly<Record<string, Geometry>>;
}

export type Geometry =
  | { type: "GeometryCollection"; geometries: readonly Geometry[] }
  | { type: "Polygon"; arcs: readonly (readonly number[])[] }
  | { type: "MultiPolygon"; arcs: readonly (readonly (readonly number[])[])[] };

/** Longitudes and latitudes, alternating. */
export type Line = Float64Array;

/** Returns a function that decodes the arcs of a topology. */
export function lineOf({ transform }: Pick<Topology, "transform">): (steps: Topology["arcs"][number]) => Line {
  const [scaleX = 1, scaleY = 1] = transform.scale;
  const [startX = 0, startY = 0] = transform.translate;
  return (steps) => {
    const line = new Float64Array(2 * steps.length);
    let x = 0;
    let y = 0;
    steps.forEach(([dx = 0, dy = 0], i) => {
      x += dx;
      y += dy;
      line[2 * i] = x * scaleX + startX;
      line[2 * i + 1] = y * scaleY + startY;
    });
    return line;
  };
}

/** Returns the closed lines around the areas of an object, including holes. */
export function ringsOf(geometry: Geometry, lines: readonly Line[]): Line[] {
  switch (geometry.type) {
    case "GeometryCollection":
      return geometry.geometries.flatMap((member) => ringsOf(member, lines));
    case "MultiPolygon":
      return geometry.arcs.flat().map((ring) => join(ring, lines));
    case "Polygon":
      return geometry.arcs.map((ring) => join(ring, lines));
  }
}

/** Joins lines to a ring. The index `~i` means line i in reverse. Each line begins at the last point of the one before it. */
function join(ring: readonly number[], lines: readonly Line[]): Line {
  const coordinates: number[] = [];
  for (const index of ring) {
    const line = lines[index < 0 ? ~index : index];
    if (line === undefined) continue;
    const count = line.length / 2;
    for (let i = coordinates.length === 0 ? 0 : 1; i < count; i++) {
      const at = 2 * (index < 0 ? count - 1 - i : i);
      coordinates.push(line[at] ?? 0, line[at + 1] ?? 0);
    }
  }
  return Float64Array.from(coordinates);
}
