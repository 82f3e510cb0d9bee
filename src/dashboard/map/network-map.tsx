import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AccessPointState } from "../../schemas/overview.ts";
import { settings } from "../api/operations.ts";
import "../style/map.css";
import { Credit } from "./credit.tsx";
import type { Mark } from "./drawing/marks.ts";
import { type At, followGestures } from "./gestures.ts";
import { lazy } from "./lazy.ts";
import { PlaceList } from "./place-list.tsx";
import { Scene } from "./scene.ts";
import { spotsOf } from "./spots.ts";
import { Tooltip } from "./tooltip.tsx";

const pageSettings = lazy(settings);

/** A map of access points, as large as what it is in. A table beside it must say the same: not everybody can see a map. */
export function NetworkMap({
  points,
  selected,
  onOpen,
}: {
  points: readonly AccessPointState[];
  /** The `ap_id` of one to be pointed out. */
  selected?: string;
  onOpen(apId: string): void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scene = useRef<Scene | undefined>(undefined);
  const pointedAt = useRef<At | undefined>(undefined);
  const [hovered, setHovered] = useState<Mark>();
  const [listed, setListed] = useState<Mark>();
  const [, setIsSettled] = useState(false);
  const open = useRef(onOpen);
  open.current = onOpen;
  const spots = useMemo(() => spotsOf(points), [points]);

  useEffect(() => {
    if (canvas.current === null) return;
    const map = new Scene(canvas.current);
    scene.current = map;
    const point = (at: At | undefined) => {
      pointedAt.current = at;
      setHovered(at && map.markAt(at));
    };
    const move = (change: () => void) => {
      point(undefined);
      setListed(undefined);
      change();
    };
    const endGestures = followGestures(canvas.current, {
      pan: (dx, dy) => move(() => map.pan(dx, dy)),
      zoom: (steps, at) => move(() => map.zoom(steps, at)),
      hover: point,
      press(at) {
        const mark = map.markAt(at);
        const [first] = mark?.members ?? [];
        point(undefined);
        setListed(undefined);
        if (mark === undefined || first === undefined) return;
        if (mark.members.length === 1) open.current(first.accessPoint.ap_id);
        else if (!map.separate(mark)) setListed(mark);
      },
    });
    return () => {
      endGestures();
      map.end();
    };
  }, []);

  useEffect(() => {
    scene.current?.show(spots, selected);
    // What is pointed at may have changed, or gone.
    if (pointedAt.current !== undefined) setHovered(scene.current?.markAt(pointedAt.current));
  }, [spots, selected]);

  const closeList = () => {
    setListed(undefined);
    canvas.current?.focus();
  };

  const map = pageSettings(() => setIsSettled(true))?.map;
  const tiles = map?.tiles ?? undefined;
  useEffect(() => scene.current?.useTiles(tiles), [tiles]);

  return (
    <div class="map">
      <div role="application" aria-label="Map of access points. Arrow keys move it, plus and minus zoom.">
        <canvas ref={canvas} tabIndex={0} data-pointed={hovered !== undefined} />
      </div>
      <div class="map-buttons">
        <button type="button" aria-label="Zoom in" onClick={() => scene.current?.zoom(1)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => scene.current?.zoom(-1)}>
          −
        </button>
        <button type="button" onClick={() => scene.current?.showAll()}>
          Show all
        </button>
      </div>
      {hovered && <Tooltip mark={hovered} />}
      {listed && <PlaceList mark={listed} onClose={closeList} />}
      <Credit attribution={tiles === undefined ? undefined : (map?.attribution ?? "")} />
    </div>
  );
}
