import { signal } from "@preact/signals";

/**
 * The current page and its parameters. They are in the address's fragment, so that one HTML file serves every page and the browser's
 * back button works.
 */
export interface Route {
  /** The segments of the path: `#/access-points/roof-1` is ["access-points", "roof-1"]. */
  path: readonly string[];
  query: URLSearchParams;
}

/** The props of every page. */
export interface PageProps {
  route: Route;
}

function currentRoute(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

/** Returns text with invalid escapes unchanged: users may type any address. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal<Route>(currentRoute());
addEventListener("hashchange", () => {
  route.value = currentRoute();
});

/** Returns the address of a page, for links. Omits empty parameters. */
export function href(path: readonly string[], query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${search && `?${search}`}`;
}

export function navigate(path: readonly string[], query?: Record<string, string>): void {
  location.hash = href(path, query);
}

/** Changes the address without a new entry in the browser's history: for filters and other choices on one page. */
export function replaceRoute(path: readonly string[], query?: Record<string, string>): void {
  history.replaceState(null, "", href(path, query));
  route.value = currentRoute();
}
