import type { Result, Router } from "hono/router";
import { TrieRouter } from "hono/router/trie-router";

/**
 * Caches the match of paths without parameters, which are the most requested ones. Hono's fast router does not support `/users/me` beside
 * `/users/:username`, and its fallback walks the tree for every request.
 */
export class CachingRouter<T> implements Router<T> {
  readonly name = "CachingRouter";
  readonly #router = new TrieRouter<T>();
  /** By method, then path. */
  readonly #cached = new Map<string, Map<string, Result<T> | undefined>>();

  add(method: string, path: string, handler: T): void {
    this.#router.add(method, path, handler);
    if (/[:*]/.test(path)) return;
    const ofMethod = this.#cached.get(method) ?? new Map();
    this.#cached.set(method, ofMethod.set(path, undefined));
  }

  match(method: string, path: string): Result<T> {
    const ofMethod = this.#cached.get(method);
    const cached = ofMethod?.get(path);
    if (cached !== undefined) return cached;
    const matched = this.#router.match(method, path);
    // Cache registered paths only: the number of other paths is unlimited.
    if (ofMethod?.has(path)) ofMethod.set(path, matched);
    return matched;
  }
}
