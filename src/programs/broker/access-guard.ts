import { type AuditFeed, concernedBy } from "../../accounts/audit-feed.ts";
import type { AccountVersions } from "../../accounts/login/account-versions.ts";
import type { Sessions } from "./store.ts";

/** A connected client. It may stay connected while its account has the version that its token names. */
export interface ConnectedClient {
  kind: "agent" | "app" | "user";
  name: string;
  version: number;
  disconnect(): void;
}

/** The persistent sessions of agents, connected or not. */
export type AgentSessions = Pick<Sessions, "owners" | "removeAgent">;

/**
 * Disconnects clients whose account was deleted, or changed so that its tokens are no longer valid, and removes the sessions of deleted
 * agents. The audit trail shows which accounts changed, so one query per kind of account is enough.
 */
export class AccessGuard {
  readonly #auditFeed: AuditFeed;
  readonly #versionsOf: AccountVersions;
  readonly #sessions: AgentSessions | undefined;
  readonly #connected = new Set<ConnectedClient>();
  /** Clients that have connected since the last check, and clients whose check failed. */
  readonly #unchecked = new Set<ConnectedClient>();
  readonly #uncheckedOwners = new Set<string>();
  #mark: number | undefined;

  constructor(auditFeed: AuditFeed, versionsOf: AccountVersions, sessions?: AgentSessions) {
    this.#auditFeed = auditFeed;
    this.#versionsOf = versionsOf;
    this.#sessions = sessions;
  }

  /** Adds a client. The returned function removes it. */
  add(client: ConnectedClient): () => void {
    this.#connected.add(client);
    this.#unchecked.add(client);
    return () => {
      this.#connected.delete(client);
      this.#unchecked.delete(client);
    };
  }

  /** Checks the clients and sessions whose accounts may have changed. */
  async check(): Promise<void> {
    const isFirst = this.#mark === undefined;
    const { mark, changed } = await this.#auditFeed.since(this.#mark);
    const isConcerned = concernedBy(changed);
    for (const client of this.#connected) if (isConcerned(client.kind, client.name)) this.#unchecked.add(client);
    // Administrators may have deleted agents while the broker was not running.
    const isChanged = changed === "everything" || changed.size > 0;
    for (const name of isFirst || isChanged ? ((await this.#sessions?.owners()) ?? []) : [])
      if (isFirst || isConcerned("agent", name)) this.#uncheckedOwners.add(name);
    this.#mark = mark;
    // A client that connects meanwhile waits for the next check, because its token may be newer than the versions read here.
    const [clients, owners] = [[...this.#unchecked], [...this.#uncheckedOwners]];
    const namesOf = (kind: ConnectedClient["kind"]) =>
      clients.filter((client) => client.kind === kind).map(({ name }) => name);
    const agents = await this.#versions("agent", [...namesOf("agent"), ...owners]);
    const versions = {
      agent: agents,
      app: await this.#versions("app", namesOf("app")),
      user: await this.#versions("user", namesOf("user")),
    };
    for (const client of clients) {
      this.#unchecked.delete(client);
      if (versions[client.kind].get(client.name) !== client.version) client.disconnect();
    }
    for (const name of owners) {
      if (!agents.has(name)) await this.#sessions?.removeAgent(name);
      this.#uncheckedOwners.delete(name);
    }
  }

  async #versions(kind: ConnectedClient["kind"], names: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return names.length === 0 ? new Map() : await this.#versionsOf(kind, [...new Set(names)]);
  }
}
