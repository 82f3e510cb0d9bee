import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, type Api, unexpected } from "../api.ts";

const ATTEMPTS = 3;
const PAUSE_MS = 1_000;
/** Gone; never made, or gone already; a job that has come to its end by itself. */
const IS_REMOVED = new Set([200, 404, 409]);

/** What a run has made in the service, and its end. */
export class Made {
  readonly #paths: string[] = [];

  /** Before it is asked for: it may be made although the answer is lost. */
  note(path: string): void {
    this.#paths.push(path);
  }

  /** Removes all of it, the latest first; what could not be removed, and why. */
  async remove(api: Api, adminToken: string): Promise<string[]> {
    const left: string[] = [];
    for (const path of this.#paths.splice(0).reverse()) {
      const fault = await removed(api, path, adminToken);
      if (fault !== undefined) left.push(fault);
    }
    return left;
  }
}

async function removed(api: Api, path: string, token: string): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    const answer: Answer | Error = await api.send("DELETE", path, { token }).catch((error: Error) => error);
    if (!(answer instanceof Error) && IS_REMOVED.has(answer.status)) return undefined;
    if (attempt === ATTEMPTS) {
      return answer instanceof Error
        ? `DELETE ${path}: ${answer.message}`
        : unexpected(`DELETE ${path}`, answer).message;
    }
    await sleep(PAUSE_MS);
  }
}
