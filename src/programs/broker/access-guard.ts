import { type AuditFeed, concernedBy } from "../../accounts/audit-feed.ts";
import type { AccountVersions } from "../../accounts/login/account-versions.ts";

/** A client that is connected with a token, and may stay while its account has the version that the token names. */
export interface Watched {
  kind: "agent" | "app";
  name: string;
  version: number;
  end(): void;
}

/** What the broker keeps for agents, connected or not. */
export interface KeptForAgents {
  owners(): Iterable<string>;
  forget(apId: string): Promise<void>;
}

/**
 * Ends the connections of clients whose account is gone, or has changed so that its tokens are no longer valid, and drops what is kept
 * for agents that are gone. As elsewhere in the service, the audit trail tells which accounts to look up: one query for all of them.
 */
export class AccessGuard {
  readonly #changes: AuditFeed;
  readonly #versionsOf: AccountVersions;
  readonly #kept: KeptForAgents | undefined;
  readonly #connected = new Set<Watched>();
  /** Clients that have connected since the last look, and those whose look-up failed. */
  readonly #unchecked = new Set<Watched>();
  readonly #uncheckedOwners = new Set<string>();
  #mark: number | undefined;

  constructor(changes: AuditFeed, versionsOf: AccountVersions, kept?: KeptForAgents) {
    this.#changes = changes;
    this.#versionsOf = versionsOf;
    this.#kept = kept;
  }

  /** Watches a client until the returned function is called. */
  add(client: Watched): () => void {
    this.#connected.add(client);
    this.#unchecked.add(client);
    return () => {
      this.#connected.delete(client);
      this.#unchecked.delete(client);
    };
  }

  async look(): Promise<void> {
    const isFirst = this.#mark === undefined;
    const { mark, changed } = await this.#changes.since(this.#mark);
    const concerns = concernedBy(changed);
    for (const client of this.#connected) if (concerns(client.kind, client.name)) this.#unchecked.add(client);
    // Agents may have been deleted while the broker was not running.
    for (const name of this.#kept?.owners() ?? [])
      if (isFirst || concerns("agent", name)) this.#uncheckedOwners.add(name);
    this.#mark = mark;
    // A client that connects meanwhile waits for the next look: its token may be newer than the versions.
    const [clients, owners] = [[...this.#unchecked], [...this.#uncheckedOwners]];
    const namesOf = (kind: Watched["kind"]) => clients.filter((client) => client.kind === kind).map(({ name }) => name);
    const agents = await this.#versions("agent", [...namesOf("agent"), ...owners]);
    const apps = await this.#versions("app", namesOf("app"));
    for (const client of clients) {
      this.#unchecked.delete(client);
      if ((client.kind === "agent" ? agents : apps).get(client.name) !== client.version) client.end();
    }
    for (const name of owners) {
      if (!agents.has(name)) await this.#kept?.forget(name);
      this.#uncheckedOwners.delete(name);
    }
  }

  async #versions(kind: Watched["kind"], names: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return names.length === 0 ? new Map() : await this.#versionsOf(kind, [...new Set(names)]);
  }
}
