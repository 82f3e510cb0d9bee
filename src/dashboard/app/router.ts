import { observable } from "../lib/observable.ts";

/**
 * Where in the page we are: the address's fragment, so that one file serves every place and the browser's own buttons work.
 */
export interface Place {
  /** The parts of the path: `#/access-points/roof-1` is ["access-points", "roof-1"]. */
  path: readonly string[];
  query: URLSearchParams;
}

/** What every page is given. */
export interface PageProps {
  place: Place;
}

function read(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

/** A person may have typed anything. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const place = observable<Place>(read());
addEventListener("hashchange", () => place.set(read()));

/** The address of a place, for links. */
export function href(path: readonly string[], query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${search && `?${search}`}`;
}

export function go(path: readonly string[], query?: Record<string, string>): void {
  location.hash = href(path, query);
}

/** As `go`, without a step in the browser's history: for filters and the like. */
export function replace(path: readonly string[], query?: Record<string, string>): void {
  history.replaceState(null, "", href(path, query));
  place.set(read());
}
