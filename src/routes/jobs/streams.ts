import { type Context, Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../../http/context.ts";
import type { Operation } from "../../http/operation.ts";
import { path, query } from "../../http/validation.ts";
import { requireHandshake } from "../../http/web-socket.ts";
import { JobPath, StreamQuery } from "../../schemas/job.ts";
import type { StreamFormat } from "../../schemas/stream-protocol.ts";
import type { Services } from "../../services.ts";

const STREAM = {
  tag: "Jobs",
  response: z.unknown(),
  errorResponses: { 429: "The job already has 16 sockets, or a quota of open jobs is exceeded" },
} as const;

/** The WebSockets of jobs. */
export function streamsRoutes(operation: Operation, { jobs }: Pick<Services, "jobs">) {
  const open = async (
    c: Context<AppEnv>,
    format: StreamFormat,
    jobNumber: string,
    after?: number,
  ): Promise<Response> => {
    const offeredProtocols = requireHandshake(c);
    return await jobs.open(c.get("actor"), { jobNumber, format, after, offeredProtocols });
  };

  const routes = new Hono<AppEnv>();
  routes.get(
    "/api/v1/ws/:job_number",
    operation({
      ...STREAM,
      webSocket: "envelope",
      action: "jobs.stream",
      summary: "Read a job's messages over a WebSocket",
      description:
        "Send the token in the header `Authorization`, or offer it as a protocol: `job-stream.v1, bearer.<token>`. The stream starts " +
        'with all unacknowledged messages. Send `{"ack": <seq>}` to acknowledge every message up to `seq`.',
    }),
    path(JobPath),
    query(StreamQuery),
    async (c) => await open(c, "envelope", c.req.valid("param").job_number, c.req.valid("query").after),
  );
  // The reference service has one path for each kind of callback. All of them open the same stream.
  for (const kind of ["agent_data", "agent_details", "emulator"] as const) {
    routes.get(
      `/api/v1/callback/${kind}/ws/:job_number`,
      operation({
        ...STREAM,
        webSocket: "bare",
        action: `jobs.stream_${kind}`,
        summary: "Read a job's messages as bare arrays",
      }),
      path(JobPath),
      async (c) => await open(c, "bare", c.req.valid("param").job_number),
    );
  }
  return routes;
}
