import { type Context, Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { path, query } from "../http/validation.ts";
import { UpgradeRequired } from "../lib/errors.ts";
import { JobPath, StreamQuery } from "../schemas/job.ts";
import type { StreamFormat } from "../schemas/stream-protocol.ts";
import type { Services } from "../services.ts";

const STREAM = {
  tag: "Jobs",
  answer: z.unknown(),
  errorResponses: { 429: "The job has 16 sockets already, or a quota of open jobs is exceeded" },
} as const;

/** Of another version of the protocol the platform would say no itself, in words of its own; to a HEAD nothing can be upgraded. */
const isHandshake = ({ req }: Context<AppEnv>): boolean =>
  req.method === "GET" &&
  req.header("Upgrade")?.toLowerCase() === "websocket" &&
  (req.header("Sec-WebSocket-Version") ?? "13") === "13";

/** The sockets of jobs. */
export function streamsRoutes(operation: Operation, { jobs }: Pick<Services, "jobs">) {
  const open = async (c: Context<AppEnv>, form: StreamFormat, jobNumber: string, after?: number): Promise<Response> => {
    if (!isHandshake(c)) throw new UpgradeRequired();
    const offeredProtocols = c.req.header("Sec-WebSocket-Protocol") ?? null;
    return await jobs.open(c.get("actor"), { jobNumber, form, after, offeredProtocols });
  };

  const routes = new Hono<AppEnv>();
  routes.get(
    "/api/v1/ws/:job_number",
    operation({
      ...STREAM,
      webSocket: "envelope",
      action: "jobs.stream",
      summary: "A job's messages, over a WebSocket",
      description:
        "The token goes into the header `Authorization`, or among the protocols: `job-stream.v1, bearer.<token>`. All that was not " +
        'acknowledged comes first. A message `{"ack": <seq>}` acknowledges up to there.',
    }),
    path(JobPath),
    query(StreamQuery),
    async (c) => await open(c, "envelope", c.req.valid("param").job_number, c.req.valid("query").after),
  );
  // The reference has one for each kind of callback; all of them lead to the same stream.
  for (const kind of ["agent_data", "agent_details", "emulator"] as const) {
    routes.get(
      `/api/v1/callback/${kind}/ws/:job_number`,
      operation({
        ...STREAM,
        webSocket: "bare",
        action: `jobs.stream_${kind}`,
        summary: "The same, as bare arrays",
      }),
      path(JobPath),
      async (c) => await open(c, "bare", c.req.valid("param").job_number),
    );
  }
  return routes;
}
