import { type DomainError, NotAllowed, NotAuthenticated, TooMany, Unavailable } from "../../lib/errors.ts";
import { callObject } from "../../storage/durable-objects.ts";
import type { ProducerInput } from "../producers/producer.ts";
import { encodeHandshake, type StreamHandshake } from "./handshake.ts";
import type { JobDescription, JobStream, Posted } from "./job-stream.ts";
import type { NewMessage } from "./message-buffer.ts";
import type { ClosedState } from "./message-store.ts";

const PART = "job";

/** The way to a job's object. */
export interface StreamClient {
  post(jobNumber: string, message: NewMessage): Promise<Posted>;
  /** Has the service itself produce what the job asks for. */
  start(jobNumber: string, work: ProducerInput): Promise<void>;
  describe(jobNumber: string): Promise<JobDescription>;
  close(jobNumber: string, state: ClosedState): Promise<void>;
  /** The answer to a request for a WebSocket. */
  open(opening: StreamHandshake, offeredProtocols: string | null): Promise<Response>;
}

export function createStreamClient(namespace: DurableObjectNamespace<JobStream>): StreamClient {
  const stream = (jobNumber: string) => namespace.getByName(jobNumber);
  return {
    // Said in so many words: the platform types an answer of several shapes as several promises.
    post: (jobNumber, message) => callObject(PART, stream(jobNumber).post(message) as Promise<Posted>),
    start: (jobNumber, work) => callObject(PART, stream(jobNumber).start(jobNumber, work)),
    describe: (jobNumber) => callObject(PART, stream(jobNumber).describe()),
    close: (jobNumber, state) => callObject(PART, stream(jobNumber).close(state)),
    async open(opening, offeredProtocols) {
      const response = await callObject(
        PART,
        stream(opening.jobNumber).fetch(encodeHandshake(opening, offeredProtocols)),
      );
      const { webSocket, headers } = response;
      if (webSocket === null) throw refusal(response);
      // Made anew: headers that come from an object cannot be added to.
      return new Response(null, { status: 101, webSocket, headers });
    },
  };
}

/** The object has no exceptions to throw over: what it refuses, it refuses with a status. */
function refusal({ status, headers }: Response): DomainError {
  if (status === 401) return new NotAuthenticated("Could not validate credentials");
  if (status === 403) return new NotAllowed();
  if (status === 429) return new TooMany(Number(headers.get("Retry-After")));
  return new Unavailable("accounts database", new Error("A reader's access could not be checked"));
}
