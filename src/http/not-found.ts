import type { NotFoundHandler } from "hono";
import { METHOD_NAME_ALL } from "hono/router";
import { TrieRouter } from "hono/router/trie-router";
import type { AppEnv } from "./context.ts";
import type { DeclaredRoute } from "./route-registry.ts";

/**
 * Creates the handler for requests that match no route. It responds with 405 and `Allow` if another method matches, with 307 if only the
 * final slash differs, and otherwise with 404. It matches the path itself, so that it adds no cost to other requests.
 */
export function createNotFound(routes: readonly DeclaredRoute[]): NotFoundHandler<AppEnv> {
  const router = new TrieRouter<string>();
  for (const { method, path } of routes) router.add(METHOD_NAME_ALL, path, method);
  const methodsOf = (path: string): string[] => {
    const methods = new Set(router.match(METHOD_NAME_ALL, path)[0].map(([method]) => method));
    if (methods.has("GET")) methods.add("HEAD");
    return [...methods].sort();
  };

  return function notFound(c) {
    const url = new URL(c.req.url);
    const allowed = methodsOf(url.pathname);
    if (allowed.length > 0) return c.json({ detail: "Method Not Allowed" }, 405, { Allow: allowed.join(", ") });
    const toggled = url.pathname.endsWith("/") ? url.pathname.slice(0, -1) : `${url.pathname}/`;
    if (methodsOf(toggled).length > 0) return c.redirect(`${toggled}${url.search}`, 307);
    return c.json({ detail: "Not Found" }, 404);
  };
}
