import { describe, expect, it } from "vitest";
import { clustersOf } from "../../../src/dashboard/map/clusters.ts";
import { isVisible, ringShape, type Shape, shapeOf, traceShape } from "../../../src/dashboard/map/drawing/shapes.ts";
import { tilesFor } from "../../../src/dashboard/map/drawing/tile-grid.ts";
import { LABEL_HEIGHT_PX, overlaps, placeLabels } from "../../../src/dashboard/map/drawing/town-labels.ts";
import { project, unproject } from "../../../src/dashboard/map/projection.ts";
import {
  boundsOf,
  clampView,
  type Frame,
  fitView,
  frameOf,
  MAX_ZOOM,
  scaleBarFor,
  screenX,
  screenY,
  zoomViewAt,
} from "../../../src/dashboard/map/view.ts";
import { createRandom } from "../../../src/emulator/models/random.ts";
import { spreadAround } from "../../../src/emulator/spread.ts";
import { ACCESS_POINT_TYPES } from "../../../src/schemas/emulator.ts";

const SIZE = { width: 800, height: 500 };
const BRISTOL = project(51.4545, -2.5879);

/** Returns the points of the drawn line. */
function drawn(shape: Shape, frame: Frame): [x: number, y: number][] {
  const points: [number, number][] = [];
  const add = (x: number, y: number) => points.push([x, y]);
  traceShape(shape, 0, frame, { moveTo: add, lineTo: add });
  return points;
}

describe("the projection", () => {
  it("is inverted by unproject", () => {
    for (const [latitude, longitude] of [
      [0, 0],
      [51.4545, -2.5879],
      [-77.85, 166.67],
      [85, -180],
    ] as const) {
      const back = unproject(project(latitude, longitude));
      expect(back.latitude).toBeCloseTo(latitude, 9);
      expect(back.longitude).toBeCloseTo(longitude, 9);
    }
  });

  it("maps the equator to the centre and the poles to the edges", () => {
    expect(project(0, 0)).toEqual({ x: 0.5, y: 0.5 });
    expect(project(90, 0).y).toBeCloseTo(0, 6);
    expect(project(-90, 0).y).toBeCloseTo(1, 6);
  });
});

describe("the view", () => {
  it("keeps the point under the pointer in place while it zooms", () => {
    const view = clampView({ ...BRISTOL, zoom: 6 }, SIZE);
    const at = { x: 100, y: 400 };
    const under = (frame: Frame) => ({ x: frame.left + at.x / frame.scale, y: frame.top + at.y / frame.scale });
    const before = under(frameOf(view, SIZE));
    const after = under(frameOf(zoomViewAt(view, 1.7, at, SIZE), SIZE));
    expect(after.x).toBeCloseTo(before.x, 12);
    expect(after.y).toBeCloseTo(before.y, 12);
  });

  it("fits all points, also across the date line", () => {
    const points = [project(-17.7, 178), project(-14.3, -170.7), project(-41.3, 174.8)];
    const box = boundsOf(points);
    if (box === undefined) throw new Error("no box");
    expect(box.right - box.left).toBeLessThan(0.1);
    const frame = frameOf(fitView(box, SIZE), SIZE);
    for (const { x, y } of points) {
      expect(screenX(x, frame)).toBeGreaterThan(0);
      expect(screenX(x, frame)).toBeLessThan(SIZE.width);
      expect(screenY(y, frame)).toBeGreaterThan(0);
      expect(screenY(y, frame)).toBeLessThan(SIZE.height);
    }
  });

  it("has a scale bar of a round length", () => {
    const frame = frameOf({ ...BRISTOL, zoom: 10 }, SIZE);
    const { widthPx, text } = scaleBarFor(frame, 100);
    expect(text).toBe("5 km");
    // A pixel at zoom 10 is 152.9 m at the equator.
    expect((widthPx * 152.874 * Math.cos((51.4545 * Math.PI) / 180)) / 5_000).toBeCloseTo(1, 3);
  });

  it("is covered by existing tiles", () => {
    const tiles = tilesFor(frameOf(clampView({ x: 0.99, y: 0.5, zoom: 3.4 }, SIZE), SIZE));
    for (const { zoom, column, row } of tiles) {
      expect(zoom).toBe(3);
      expect(column).toBeGreaterThanOrEqual(0);
      expect(column).toBeLessThan(8);
      expect(row).toBeGreaterThanOrEqual(0);
      expect(row).toBeLessThan(8);
    }
    expect(tiles.some(({ column }) => column === 0)).toBe(true);
    expect(Math.min(...tiles.map(({ x }) => x))).toBeLessThanOrEqual(0);
    expect(Math.max(...tiles.map(({ x, sizePx }) => x + sizePx))).toBeGreaterThanOrEqual(SIZE.width);
  });
});

describe("a shape", () => {
  const frame = frameOf({ x: 0.5, y: 0.5, zoom: 4 }, SIZE);

  it("continues beyond the date line instead of jumping across the world", () => {
    const { box } = shapeOf([170, 179, -179, -170].map((longitude) => [longitude, 60]));
    expect(box.right - box.left).toBeCloseTo(20 / 360, 9);
  });

  it("around a pole is closed along the edge of the map", () => {
    const { points } = ringShape([-180, -60, 60, 180].map((longitude) => [longitude, -70]));
    expect(Array.from(points.slice(-4))).toEqual([1, 1, 0, 1]);
  });

  it("is visible only if its box is in the frame", () => {
    const here = shapeOf([
      [-1, 0],
      [1, 0],
    ]).box;
    const away = shapeOf([
      [90, 0],
      [91, 0],
    ]).box;
    expect(isVisible(here, 0, frame)).toBe(true);
    expect(isVisible(here, 1, frame)).toBe(false);
    expect(isVisible(away, 0, frame)).toBe(false);
  });

  it("is drawn without points that make no difference", () => {
    const winding = Array.from({ length: 2_000 }, (_, i) => [90 + Math.sin(i), 20 - i / 50]);
    const away = shapeOf([[0, 20], ...winding, [0, -20]]);
    expect(drawn(away, frame).length).toBeLessThan(10);
    const dense = shapeOf(Array.from({ length: 2_000 }, (_, i) => [i / 2_000, 0]));
    expect(drawn(dense, frame).length).toBeLessThan(40);
  });

  it("around an area covers the same pixels when it is drawn with fewer points", () => {
    const random = createRandom(7);
    const corners = Array.from({ length: 400 }, (_, i) => {
      const [turn, radius] = [(i / 400) * 2 * Math.PI, random.between(5, 60)];
      return [radius * Math.cos(turn), radius * Math.sin(turn)];
    });
    const shape = ringShape([...corners, ...corners.slice(0, 1)]);
    const whole = Array.from({ length: shape.points.length / 2 }, (_, i): [number, number] => [
      screenOf(shape.points[2 * i] ?? 0, frame.left),
      screenOf(shape.points[2 * i + 1] ?? 0, frame.top),
    ]);
    const less = drawn(shape, frame);
    expect(less.length).toBeLessThan(whole.length);
    for (let i = 0; i < 500; i++) {
      const at = [random.between(0, SIZE.width), random.between(0, SIZE.height)] as const;
      expect(isInside(at, less)).toBe(isInside(at, whole));
    }
  });

  const screenOf = (world: number, start: number): number => (world - start) * frame.scale;
});

/** Counts the crossings of a ray, as the fill rule `evenodd` does. */
function isInside([x, y]: readonly [number, number], ring: readonly [number, number][]): boolean {
  let isIn = false;
  ring.forEach(([x1, y1], i) => {
    const [x2, y2] = ring[(i + 1) % ring.length] ?? [0, 0];
    if (y1 > y !== y2 > y && x < x1 + ((y - y1) / (y2 - y1)) * (x2 - x1)) isIn = !isIn;
  });
  return isIn;
}

describe("clusters", () => {
  const random = createRandom(1);
  const points = Array.from({ length: 3_000 }, () => project(random.between(35, 60), random.between(-10, 30)));
  const box = boundsOf(points);
  if (box === undefined) throw new Error("no box");
  const view = fitView(box, SIZE);

  it("contain every point exactly once", () => {
    const members = clustersOf(points, frameOf(view, SIZE)).flatMap((cluster) => cluster.members);
    expect(members).toHaveLength(points.length);
    expect(new Set(members)).toEqual(new Set(points));
  });

  it("do not change while the map is dragged", () => {
    const frame = frameOf(view, SIZE);
    const dragged = { ...frame, left: frame.left + 33 / frame.scale, top: frame.top - 7 / frame.scale };
    const keyOf = ({ members }: { members: object[] }) => members.length;
    expect(clustersOf(points, dragged).map(keyOf)).toEqual(clustersOf(points, frame).map(keyOf));
  });

  it("separate at a higher zoom, except for points at the same position", () => {
    const two = [BRISTOL, { x: BRISTOL.x + 1e-5, y: BRISTOL.y }];
    const apart = (near: typeof two, zoom: number) => clustersOf(near, frameOf({ ...BRISTOL, zoom }, SIZE)).length;
    expect(apart(two, 8)).toBe(1);
    expect(apart(two, 16)).toBe(2);
    expect(apart([BRISTOL, { ...BRISTOL }], 18)).toBe(1);
  });

  it.each(ACCESS_POINT_TYPES)(
    "separate a hundred emulated %s access points of one location at the nearest zoom",
    (type) => {
      const centre = { latitude: 51.45523, longitude: -2.59665 };
      const points = Array.from({ length: 100 }, (_, index) => {
        const { latitude, longitude } = spreadAround(centre, type, index, 100);
        return project(latitude, longitude);
      });
      const { x, y } = project(centre.latitude, centre.longitude);
      // Large enough to contain all of them.
      const frame = frameOf({ x, y, zoom: MAX_ZOOM }, { width: 1e6, height: 1e6 });
      const { length } = clustersOf(points, frame);
      // A few are closer together than the width of their markers.
      expect(length).toBeGreaterThan(90);
    },
  );
});

describe("labels", () => {
  const random = createRandom(2);
  const towns = Array.from({ length: 2_000 }, (_, i) => ({
    name: `Town ${i}`,
    ...project(random.between(45, 56), random.between(-10, 15)),
  }));
  const frame = frameOf({ ...BRISTOL, zoom: 6 }, SIZE);
  const widthOf = (text: string) => text.length * 7;
  const occupied = [{ left: 350, right: 450, top: 200, bottom: 300 }];

  it("cover nothing, and name larger towns first", () => {
    const labels = placeLabels(towns, 6, frame, widthOf, occupied);
    expect(labels.length).toBeGreaterThan(10);
    const rectangles = labels.map(({ text, x, y }) => ({
      left: x - widthOf(text) / 2,
      right: x + widthOf(text) / 2,
      top: y - LABEL_HEIGHT_PX / 2,
      bottom: y + LABEL_HEIGHT_PX / 2,
    }));
    const all = [...occupied, ...rectangles];
    all.forEach((label, i) => {
      for (const other of all.slice(i + 1)) expect(overlaps(label, other)).toBe(false);
    });
    const order = labels.map(({ text }) => towns.findIndex(({ name }) => name === text));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });

  it("are not shown in a view of the whole world", () => {
    expect(placeLabels(towns, 2, frameOf({ ...BRISTOL, zoom: 2 }, SIZE), widthOf, [])).toEqual([]);
  });
});
