import { DurableObject } from "cloudflare:workers";

/** One job's stream: its sockets, and the messages that nobody has acknowledged yet. */
export class JobStream extends DurableObject<Env> {}
