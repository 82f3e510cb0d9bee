import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { path, query } from "../http/validation.ts";
import { DataRequest, JobPath, JobRecord, JobStatus, JobsQuery, Queued } from "../schemas/job.ts";
import { Ack } from "../schemas/primitives.ts";
import type { Services } from "../services.ts";

const TAG = "Jobs";
const UNKNOWN = { 404: "There is no such job" };
const QUOTA = { 429: "A quota of open jobs is exceeded; the detail names it" };

export function jobsRoutes(operation: Operation, { jobs }: Pick<Services, "jobs">) {
  return new Hono<AppEnv>()
    .post(
      "/api/v1/agent_details/request_all_agents_details",
      operation({
        action: "jobs.request_details",
        tag: "Agent operations",
        summary: "Request the details of all agents",
        description: "They come over the job's WebSocket, in pages.",
        answer: Queued,
        errorResponses: QUOTA,
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
          "ends in the future goes on with what comes until then; without a reader for five minutes it is suspended until one connects.",
        answer: Queued,
        errorResponses: { ...QUOTA, 404: "There is no such agent" },
      }),
      query(DataRequest),
      async (c) => c.json(await jobs.requestAgentData(c.get("actor"), c.req.valid("query"))),
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
        errorResponses: UNKNOWN,
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
        answer: Ack,
        errorResponses: { ...UNKNOWN, 409: "The job has come to its end already" },
      }),
      path(JobPath),
      async (c) => c.json(await jobs.cancel(c.get("actor"), c.req.valid("param").job_number)),
    );
}
