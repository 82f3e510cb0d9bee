import { type DomainError, NotAllowed, NotAuthenticated, TooMany, Unavailable } from "../../lib/errors.ts";
import { CallBatcher } from "../../storage/call-batcher.ts";
import { callObject } from "../../storage/durable-objects.ts";
import type { ProducerInput } from "../producers/producer.ts";
import { encodeHandshake, type StreamHandshake } from "./handshake.ts";
import type { JobDescription, JobStream, Posted } from "./job-stream.ts";
import type { NewMessage } from "./message-buffer.ts";
import type { ClosedState } from "./message-store.ts";

const COMPONENT = "job";
/** A message waits so long for a call in flight. */
const MAX_HOLD_MS = 100;
/** Characters in one call. A longer message is sent alone. */
const MAX_CALL_LENGTH = 1_000_000;
const TIMEOUT_MS = 10_000;

/** Calls jobs' Durable Objects. */
export interface StreamClient {
  post(jobNumber: string, message: NewMessage): Promise<Posted>;
  /** Starts the service's own producer for the job. */
  start(jobNumber: string, input: ProducerInput): Promise<void>;
  describe(jobNumber: string): Promise<JobDescription>;
  close(jobNumber: string, state: ClosedState): Promise<void>;
  /** Checks the access of the job's readers, and closes the sockets of those without it. */
  recheck(jobNumber: string): Promise<void>;
  /** Returns the response that upgrades the client's request to a WebSocket. */
  open(handshake: StreamHandshake, offeredProtocols: string | null): Promise<Response>;
}

export function createStreamClient(namespace: DurableObjectNamespace<JobStream>): StreamClient {
  const stream = (jobNumber: string) => namespace.getByName(jobNumber);
  /** Messages of several requests to one job share a call: most of a message's cost is the call and its commit. */
  const createBatcher = (jobNumber: string) =>
    new CallBatcher<NewMessage, Posted>({
      component: COMPONENT,
      maxHoldMs: MAX_HOLD_MS,
      maxWeight: MAX_CALL_LENGTH,
      timeoutMs: TIMEOUT_MS,
      // Cast: the platform types the result of a union as a union of promises.
      call: (messages) => callObject(COMPONENT, stream(jobNumber).post([...messages]) as Promise<Posted[]>),
    });
  /** Of the jobs with a message in flight. */
  const batchers = new Map<string, ReturnType<typeof createBatcher>>();
  return {
    async post(jobNumber, message) {
      const batcher = batchers.get(jobNumber) ?? createBatcher(jobNumber);
      batchers.set(jobNumber, batcher);
      try {
        return await batcher.add(message, message.data.length);
      } finally {
        if (batcher.isIdle) batchers.delete(jobNumber);
      }
    },
    start: (jobNumber, input) => callObject(COMPONENT, stream(jobNumber).start(jobNumber, input)),
    describe: (jobNumber) => callObject(COMPONENT, stream(jobNumber).describe()),
    close: (jobNumber, state) => callObject(COMPONENT, stream(jobNumber).close(state)),
    recheck: (jobNumber) => callObject(COMPONENT, stream(jobNumber).recheck()),
    async open(handshake, offeredProtocols) {
      const response = await callObject(
        COMPONENT,
        stream(handshake.jobNumber).fetch(encodeHandshake(handshake, offeredProtocols)),
      );
      const { webSocket, headers } = response;
      if (webSocket === null) throw refusalError(response);
      // Copied: the headers of an object's response are immutable, and middleware adds some.
      return new Response(null, { status: 101, webSocket, headers });
    },
  };
}

/** Returns the error for a refused socket. An exception would lose its class between objects, so the object returns a status. */
function refusalError({ status, headers }: Response): DomainError {
  if (status === 401) return new NotAuthenticated("Could not validate credentials");
  if (status === 403) return new NotAllowed();
  if (status === 429) return new TooMany(Number(headers.get("Retry-After")));
  return new Unavailable("accounts database", new Error("The access check of a reader failed"));
}
