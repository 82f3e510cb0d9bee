import { type Context, Hono } from "hono";
import * as z from "zod";
import { UpgradeRequired } from "../errors.ts";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, path, query } from "../http/validation.ts";
import type { Form } from "../jobs/envelope.ts";
import {
  AnyItems,
  CallbackAnswer,
  CallbackQuery,
  DataRequest,
  JobPath,
  JobRecord,
  JobStatus,
  JobsQuery,
  ObjectItems,
  Queued,
  StreamQuery,
} from "../schemas/job.ts";
import { Done } from "../schemas/primitives.ts";
import type { Services } from "../services.ts";

const TAG = "Jobs";
const CALLBACKS_TAG = "Callbacks";
const UNKNOWN = { 404: "There is no such job" };
const CALLBACK = {
  tag: CALLBACKS_TAG,
  answer: CallbackAnswer,
  otherAnswers: {
    409: "The job was cancelled or has expired",
    429: "The job holds all that it can of what nobody has read yet; Retry-After says when to try again",
  },
};
const STREAM = {
  tag: TAG,
  answer: z.unknown(),
  otherAnswers: { 429: "The job has 16 sockets already" },
} as const;

export function jobsRoutes(operation: Operation, { jobs }: Pick<Services, "jobs">) {
  const callbackOf = (c: Context<AppEnv>, jobNumber: string, items: unknown[]) => ({
    jobNumber,
    data: JSON.stringify(items),
    key: c.req.header("Idempotency-Key"),
  });
  const open = async (c: Context<AppEnv>, form: Form, jobNumber: string, after?: number): Promise<Response> => {
    if (c.req.header("Upgrade")?.toLowerCase() !== "websocket") throw new UpgradeRequired();
    const offeredProtocols = c.req.header("Sec-WebSocket-Protocol") ?? null;
    return await jobs.open(c.get("actor"), { jobNumber, form, after, offeredProtocols });
  };

  return new Hono<AppEnv>()
    .post(
      "/api/v1/agent_details/request_all_agents_details",
      operation({
        action: "jobs.request_details",
        tag: "Agent operations",
        summary: "Request the details of all agents",
        description: "They come over the job's WebSocket, in pages.",
        answer: Queued,
      }),
      async (c) => c.json(await jobs.requestAgentDetails(c.get("actor"))),
    )
    .post(
      "/api/v1/agent_data/request_agent_data",
      operation({
        action: "jobs.request_data",
        tag: "Agent operations",
        summary: "Request an agent's data for a period",
        description:
          "It comes over the job's WebSocket: rows `{time, field, value}`, metric by metric, ascending in time within each. A period that " +
          "ends in the future goes on with what comes until then.",
        answer: Queued,
        otherAnswers: { 404: "There is no such agent" },
      }),
      query(DataRequest),
      async (c) => c.json(await jobs.requestAgentData(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      "/api/v1/callback/agent_data",
      operation({ ...CALLBACK, action: "callbacks.agent_data", summary: "Post data to a job" }),
      query(CallbackQuery),
      body(AnyItems),
      async (c) => {
        const callback = callbackOf(c, c.req.valid("query").job_number, c.req.valid("json"));
        return c.json(await jobs.callback(c.get("actor"), "agent_data", callback));
      },
    )
    .post(
      "/api/v1/callback/agent_details",
      operation({ ...CALLBACK, action: "callbacks.agent_details", summary: "Post agents' details to a job" }),
      query(CallbackQuery),
      body(ObjectItems),
      async (c) => {
        const callback = callbackOf(c, c.req.valid("query").job_number, c.req.valid("json"));
        return c.json(await jobs.callback(c.get("actor"), "agent_details", callback));
      },
    )
    .post(
      "/api/v1/callback/emulator",
      operation({ ...CALLBACK, action: "callbacks.emulator", summary: "Post an emulator's results to a job" }),
      query(CallbackQuery),
      body(ObjectItems),
      async (c) => {
        const callback = callbackOf(c, c.req.valid("query").job_number, c.req.valid("json"));
        return c.json(await jobs.callback(c.get("actor"), "emulator", callback));
      },
    )
    .post(
      "/api/v1/callback/command",
      operation({ ...CALLBACK, action: "callbacks.command", summary: "Post the answer to a command to its job" }),
      query(CallbackQuery),
      body(ObjectItems),
      async (c) => {
        const callback = callbackOf(c, c.req.valid("query").job_number, c.req.valid("json"));
        return c.json(await jobs.callback(c.get("actor"), "command", callback));
      },
    )
    .get(
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
    )
    .get(
      "/api/v1/callback/agent_data/ws/:job_number",
      operation({
        ...STREAM,
        webSocket: "bare",
        action: "jobs.stream_agent_data",
        summary: "The same, as bare arrays",
      }),
      path(JobPath),
      async (c) => await open(c, "bare", c.req.valid("param").job_number),
    )
    .get(
      "/api/v1/callback/agent_details/ws/:job_number",
      operation({
        ...STREAM,
        webSocket: "bare",
        action: "jobs.stream_agent_details",
        summary: "The same, as bare arrays",
      }),
      path(JobPath),
      async (c) => await open(c, "bare", c.req.valid("param").job_number),
    )
    .get(
      "/api/v1/callback/emulator/ws/:job_number",
      operation({ ...STREAM, webSocket: "bare", action: "jobs.stream_emulator", summary: "The same, as bare arrays" }),
      path(JobPath),
      async (c) => await open(c, "bare", c.req.valid("param").job_number),
    )
    .get(
      "/api/v1/jobs/",
      operation({
        action: "jobs.list",
        tag: TAG,
        summary: "The caller's jobs, newest first",
        description: "An administrator sees everybody's.",
        answer: z.array(JobRecord),
      }),
      query(JobsQuery),
      async (c) => c.json(await jobs.list(c.get("actor"), c.req.valid("query"))),
    )
    .get(
      "/api/v1/jobs/:job_number",
      operation({
        action: "jobs.read",
        tag: TAG,
        summary: "How far a job has come",
        answer: JobStatus,
        otherAnswers: UNKNOWN,
      }),
      path(JobPath),
      async (c) => c.json(await jobs.get(c.get("actor"), c.req.valid("param").job_number)),
    )
    .delete(
      "/api/v1/jobs/:job_number",
      operation({
        action: "jobs.cancel",
        tag: TAG,
        summary: "Cancel a job",
        description: "Its sockets are closed, and nothing more is taken.",
        answer: Done,
        otherAnswers: { ...UNKNOWN, 409: "The job has come to its end already" },
      }),
      path(JobPath),
      async (c) => c.json(await jobs.cancel(c.get("actor"), c.req.valid("param").job_number)),
    );
}
