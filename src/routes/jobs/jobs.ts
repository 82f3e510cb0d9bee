import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../../http/context.ts";
import type { Operation } from "../../http/operation.ts";
import { path, query } from "../../http/validation.ts";
import { SelectorQuery } from "../../schemas/fleet/selector.ts";
import { DataRequest, JobPath, JobRecord, JobStatus, JobsQuery, LiveDataRequest, Queued } from "../../schemas/job.ts";
import { Ack } from "../../schemas/primitives.ts";
import type { Services } from "../../services.ts";

const TAG = "Jobs";
const UNKNOWN = { 404: "The job does not exist" };
const QUOTA = { 429: "A quota of open jobs is exceeded; `detail` names it" };

export function jobsRoutes(operation: Operation, { jobs, selectors }: Pick<Services, "jobs" | "selectors">) {
  return new Hono<AppEnv>()
    .post(
      "/api/v1/agent_details/request_all_agents_details",
      operation({
        action: "jobs.request_details",
        tag: "Agent operations",
        summary: "Request the details of all agents",
        description: "The job's WebSocket delivers them, in pages.",
        response: Queued,
        errorResponses: QUOTA,
      }),
      query(SelectorQuery),
      async (c) => {
        const selector = await selectors.resolve(c.get("actor"), c.req.valid("query").selector);
        return c.json(await jobs.requestAgentDetails(c.get("actor"), selector));
      },
    )
    .post(
      "/api/v1/agent_data/request_agent_data",
      operation({
        action: "jobs.request_data",
        tag: "Agent operations",
        summary: "Request an agent's data for a period",
        description:
          "The job's WebSocket delivers rows `{time, field, value}`, one metric after another, each in ascending order of time. If the " +
          "period ends in the future, the job continues with new data until then. After five minutes without a reader, the job pauses " +
          "until one connects.",
        response: Queued,
        errorResponses: { ...QUOTA, 404: "The agent does not exist" },
      }),
      query(DataRequest),
      async (c) => c.json(await jobs.requestAgentData(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      "/api/v1/agent_data/request_live_data",
      operation({
        action: "jobs.request_live",
        tag: "Agent operations",
        summary: "Request the new data of many agents",
        description:
          "The job's WebSocket delivers rows `{ap_id, time, field, value}` of the agents that the selector selects and the caller sees, as they " +
          "arrive, about once a second. At most 500 agents. A change of labels, groups or grants takes effect within 5 seconds. After five " +
          "minutes without a reader, the job pauses until one connects; it does not deliver what arrived meanwhile. Needs both scopes " +
          "`agents:read` and `telemetry:read`.",
        response: Queued,
        errorResponses: QUOTA,
      }),
      query(LiveDataRequest),
      async (c) => {
        const { selector, ...request } = c.req.valid("query");
        const resolved = await selectors.resolve(c.get("actor"), selector);
        return c.json(await jobs.requestLiveData(c.get("actor"), request, resolved));
      },
    )
    .get(
      "/api/v1/jobs/",
      operation({
        action: "jobs.list",
        tag: TAG,
        summary: "List the caller's jobs, newest first",
        description: "An administrator gets the jobs of all accounts.",
        response: z.array(JobRecord),
      }),
      query(JobsQuery),
      async (c) => c.json(await jobs.list(c.get("actor"), c.req.valid("query"))),
    )
    .get(
      "/api/v1/jobs/:job_number",
      operation({
        action: "jobs.read",
        tag: TAG,
        summary: "Get the state and progress of a job",
        response: JobStatus,
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
        description: "Closes the job's sockets and rejects further messages.",
        response: Ack,
        errorResponses: { ...UNKNOWN, 409: "The job has already ended" },
      }),
      path(JobPath),
      async (c) => c.json(await jobs.cancel(c.get("actor"), c.req.valid("param").job_number)),
    );
}
