import { setTimeout as sleep } from "node:timers/promises";
import { type ApiClient, type ApiResponse, unexpected } from "./client.ts";

const ATTEMPTS = 3;
const PAUSE_MS = 1_000;
/** Deleted; never created, or deleted already; a job that has ended by itself. */
const IS_REMOVED = new Set([200, 404, 409]);

/** The accounts and jobs that a run has created, by path. */
export class CreatedResources {
  readonly #paths = new Set<string>();

  /** Call this before the creation: the service may create a resource although its response is lost. */
  add(path: string): void {
    this.#paths.add(path);
  }

  /** Deletes all resources, the latest first. Returns a text for each one that remains. */
  async remove(client: ApiClient, adminToken: string, attempts = ATTEMPTS): Promise<string[]> {
    const left: string[] = [];
    for (const path of [...this.#paths].reverse()) left.push(...(await remove(client, path, adminToken, attempts)));
    this.#paths.clear();
    return left;
  }
}

async function remove(client: ApiClient, path: string, token: string, attempts: number): Promise<string[]> {
  for (let attempt = 1; ; attempt++) {
    const request = client.request(path, { method: "DELETE", token });
    const response: ApiResponse | Error = await request.catch((error: Error) => error);
    if (!(response instanceof Error) && IS_REMOVED.has(response.status)) return [];
    const error = response instanceof Error ? response : unexpected(`DELETE ${path}`, response);
    if (attempt >= attempts) return [error.message];
    await sleep(PAUSE_MS);
  }
}
