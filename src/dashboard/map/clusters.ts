import type { WorldPoint } from "./projection.ts";
import { type Frame, screenX, screenY } from "./view.ts";

/** What stands too close to be told apart is shown as one. */
export interface Cluster<T> {
  /** Its middle, in pixels. */
  x: number;
  y: number;
  members: T[];
}

interface Cell<T> {
  column: number;
  row: number;
  sumX: number;
  sumY: number;
  members: T[];
}

const CELL_PX = 50;
/** Two middles nearer than this would cover one another. */
const NEAREST_PX = 42;
/** More rows than there are at any zoom. */
const ROWS = 2 ** 24;

/**
 * Gathers the points of a frame, and of a little around it, into clusters: one for each cell of a grid, and neighbours that lie too
 * close together joined. The grid is the world's, not the screen's, so that clusters stay what they are while the map is dragged.
 */
export function clustersOf<T extends WorldPoint>(points: readonly T[], frame: Frame): Cluster<T>[] {
  const cells = cellsOf(points, frame);
  const middle = ({ sumX, sumY, members }: Cell<T>) => ({
    x: screenX(sumX / members.length, frame),
    y: screenY(sumY / members.length, frame),
  });
  const clusters: Cluster<T>[] = [];
  // The largest first: they draw the smaller ones in.
  const bySize = [...cells.values()].sort((one, other) => other.members.length - one.members.length);
  for (const cell of bySize) {
    if (!cells.delete(keyOf(cell.column, cell.row))) continue;
    const at = middle(cell);
    for (const key of neighbours(cell)) {
      const other = cells.get(key);
      if (other === undefined) continue;
      const { x, y } = middle(other);
      if (Math.hypot(x - at.x, y - at.y) >= NEAREST_PX) continue;
      cells.delete(key);
      cell.sumX += other.sumX;
      cell.sumY += other.sumY;
      for (const member of other.members) cell.members.push(member);
    }
    clusters.push({ ...middle(cell), members: cell.members });
  }
  return clusters;
}

function cellsOf<T extends WorldPoint>(points: readonly T[], frame: Frame): Map<number, Cell<T>> {
  const cells = new Map<number, Cell<T>>();
  // As wide as a cell and its neighbour: those that can be seen are whole.
  const margin = 2 * CELL_PX;
  for (const point of points) {
    const y = screenY(point.y, frame);
    if (y < -margin || y > frame.height + margin) continue;
    const x = screenX(point.x, frame);
    if (x < -margin || x > frame.width + margin) continue;
    const column = Math.floor((point.x * frame.scale) / CELL_PX);
    const row = Math.floor((point.y * frame.scale) / CELL_PX);
    const key = keyOf(column, row);
    const cell = cells.get(key);
    if (cell === undefined) {
      cells.set(key, { column, row, sumX: point.x, sumY: point.y, members: [point] });
    } else {
      cell.sumX += point.x;
      cell.sumY += point.y;
      cell.members.push(point);
    }
  }
  return cells;
}

const keyOf = (column: number, row: number): number => column * ROWS + row;

function neighbours({ column, row }: { column: number; row: number }): number[] {
  const keys: number[] = [];
  for (let right = -1; right <= 1; right++)
    for (let down = -1; down <= 1; down++) if (right !== 0 || down !== 0) keys.push(keyOf(column + right, row + down));
  return keys;
}
