import type { AccountChanges, Changed } from "../../src/accounts/changes.ts";
import type { StillAllowed } from "../../src/jobs/access.ts";
import type { Reader } from "../../src/jobs/opening.ts";

/** Somebody who came with a token, and who may stay for as long as its account is as the token says. */
export interface Watched extends Reader {
  end(): void;
}

/**
 * Ends the connections of those whose account is gone, or has changed so that its tokens are no good. As elsewhere in the service the
 * audit trail tells which accounts to look at: one look for all, however many are connected.
 */
export class AccountWatch {
  readonly #changes: AccountChanges;
  readonly #stillAllowed: StillAllowed;
  readonly #connected = new Set<Watched>();
  /** Those that have come since the last look, and those that a look could not be had for. */
  readonly #unchecked = new Set<Watched>();
  #mark: number | undefined;

  constructor(changes: AccountChanges, stillAllowed: StillAllowed) {
    this.#changes = changes;
    this.#stillAllowed = stillAllowed;
  }

  /** Watches a client; what it returns ends that. */
  add(client: Watched): () => void {
    this.#connected.add(client);
    this.#unchecked.add(client);
    return () => {
      this.#connected.delete(client);
      this.#unchecked.delete(client);
    };
  }

  async look(): Promise<void> {
    const { mark, changed } = await this.#changes.since(this.#mark);
    for (const client of this.#connected) if (concerns(changed, client)) this.#unchecked.add(client);
    this.#mark = mark;
    for (const client of this.#unchecked) {
      const isAllowed = await this.#stillAllowed(client);
      this.#unchecked.delete(client);
      if (!isAllowed) client.end();
    }
  }
}

/** Emulated agents come and go by the thousand, under the name of their job. */
function concerns(changed: Changed, { kind, name }: Watched): boolean {
  if (changed === "everything") return true;
  return changed.has(`${kind}:${name}`) || [...changed].some((object) => object.startsWith("job:"));
}
