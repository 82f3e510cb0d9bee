import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AccessPointState } from "../../schemas/overview.ts";
import { settings } from "../api/operations.ts";
import "../style/map.css";
import { type Marker, mapPointsOf } from "./drawing/markers.ts";
import { type ScreenPoint, trackGestures } from "./gestures.ts";
import { lazy } from "./lazy.ts";
import { MapCanvas } from "./map-canvas.ts";
import { PlaceList } from "./place-list.tsx";
import { Tooltip } from "./tooltip.tsx";

const pageSettings = lazy(settings);

/** A map of access points that fills its container. A table next to it must show the same data, for users of screen readers. */
export function NetworkMap({
  points,
  view = "",
  selected,
  onOpen,
}: {
  points: readonly AccessPointState[];
  /** Identifies the selection. When it changes, the map moves to show all points. */
  view?: string;
  /** The `ap_id` of an access point to highlight. */
  selected?: string;
  onOpen(apId: string): void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const mapCanvas = useRef<MapCanvas | undefined>(undefined);
  const pointerAt = useRef<ScreenPoint | undefined>(undefined);
  const [hovered, setHovered] = useState<Marker>();
  const [listed, setListed] = useState<Marker>();
  const [, setHasSettings] = useState(false);
  const open = useRef(onOpen);
  open.current = onOpen;
  const mapPoints = useMemo(() => mapPointsOf(points), [points]);

  useEffect(() => {
    if (canvas.current === null) return;
    const map = new MapCanvas(canvas.current);
    mapCanvas.current = map;
    const hover = (at: ScreenPoint | undefined) => {
      pointerAt.current = at;
      setHovered(at && map.markerAt(at));
    };
    const move = (change: () => void) => {
      hover(undefined);
      setListed(undefined);
      change();
    };
    const stopGestures = trackGestures(canvas.current, {
      pan: (dx, dy) => move(() => map.pan(dx, dy)),
      zoom: (levels, at) => move(() => map.zoom(levels, at)),
      hover,
      press(at) {
        const marker = map.markerAt(at);
        const [first] = marker?.members ?? [];
        hover(undefined);
        setListed(undefined);
        if (marker === undefined || first === undefined) return;
        if (marker.members.length === 1) open.current(first.accessPoint.ap_id);
        else if (!map.zoomToSeparate(marker)) setListed(marker);
      },
    });
    return () => {
      stopGestures();
      map.end();
    };
  }, []);

  useEffect(() => {
    mapCanvas.current?.show(mapPoints, selected);
    // The marker under the pointer may have changed or disappeared.
    if (pointerAt.current !== undefined) setHovered(mapCanvas.current?.markerAt(pointerAt.current));
  }, [mapPoints, selected]);

  const shownView = useRef(view);
  useEffect(() => {
    if (shownView.current === view || mapPoints.length === 0) return;
    shownView.current = view;
    mapCanvas.current?.showAll();
  }, [mapPoints, view]);

  const closeList = () => {
    setListed(undefined);
    canvas.current?.focus();
  };

  const map = pageSettings(() => setHasSettings(true))?.map;
  const tiles = map?.tiles ?? undefined;
  useEffect(() => mapCanvas.current?.useTiles(tiles), [tiles]);

  return (
    <div class="map">
      <div role="application" aria-label="Map of access points. Arrow keys move it, plus and minus zoom.">
        <canvas ref={canvas} tabIndex={0} data-pointed={hovered !== undefined} />
      </div>
      <div class="map-buttons">
        <button type="button" aria-label="Zoom in" onClick={() => mapCanvas.current?.zoom(1)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => mapCanvas.current?.zoom(-1)}>
          −
        </button>
        <button type="button" onClick={() => mapCanvas.current?.showAll()}>
          Show all
        </button>
      </div>
      {hovered && <Tooltip marker={hovered} />}
      {listed && <PlaceList marker={listed} onClose={closeList} />}
      <Attribution attribution={tiles === undefined ? undefined : (map?.attribution ?? "")} />
    </div>
  );
}

/** Names the source of the map: the operator's tile server, or the built-in data. */
function Attribution({ attribution }: { attribution: string | undefined }) {
  return (
    <p class="map-credit">
      {attribution ?? (
        <>
          <a href="https://www.naturalearthdata.com" target="_blank" rel="noreferrer">
            Natural Earth
          </a>{" "}
          ·{" "}
          <a href="https://www.geonames.org" target="_blank" rel="noreferrer">
            GeoNames
          </a>{" "}
          (CC BY)
        </>
      )}
    </p>
  );
}
