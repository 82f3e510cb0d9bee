import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, path, query } from "../http/validation.ts";
import { EmulatorSpinupRequest, PlaceSuggestion, PlacesQuery, SpinupQueued } from "../schemas/emulator.ts";
import { JobPath, JobRecord } from "../schemas/job.ts";
import { Ack } from "../schemas/primitives.ts";
import type { Services } from "../services.ts";

const BASE = "/api/v1/emulator";
const TAG = "Emulator";

export function emulatorRoutes(operation: Operation, { emulators }: Pick<Services, "emulators">) {
  return new Hono<AppEnv>()
    .post(
      `${BASE}/spinup`,
      operation({
        action: "emulator.spin_up",
        tag: TAG,
        summary: "Spin up emulated access points",
        description:
          "Creates an agent for each access point and runs it for `duration` seconds. The job's WebSocket reports the progress. If a " +
          "location is not understood, no agent is created.",
        response: SpinupQueued,
        errorResponses: {
          429: "More than 30 requests within a minute, or a quota is exceeded; `detail` names it. Retry after the time in Retry-After",
        },
      }),
      body(EmulatorSpinupRequest),
      async (c) => c.json(await emulators.spinUp(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      "/api/v1/places",
      operation({
        action: "emulator.places",
        tag: TAG,
        summary: "Suggest towns by the first characters of their names",
        description:
          "For a form field with autocompletion. Each town appears once, whichever of its names matches. Cities whose main name matches are " +
          "first; then the order is by population.",
        response: z.array(PlaceSuggestion),
      }),
      query(PlacesQuery),
      async (c) => c.json(await emulators.places(c.get("actor"), c.req.valid("query"))),
    )
    .get(
      `${BASE}/`,
      operation({
        action: "emulator.list",
        tag: TAG,
        summary: "List running and queued emulator jobs",
        description: "Lists the caller's jobs; for an administrator, the jobs of all accounts.",
        response: z.array(JobRecord),
      }),
      async (c) => c.json(await emulators.list(c.get("actor"))),
    )
    .delete(
      `${BASE}/:job_number`,
      operation({
        action: "emulator.remove",
        tag: TAG,
        summary: "Stop an emulator job and remove its agents",
        description:
          "For the owner of the job and administrators, at any time, even after the emulation has ended or its agents were removed.",
        response: Ack,
        errorResponses: { 404: "The job does not exist, or was removed more than 30 days ago" },
      }),
      path(JobPath),
      async (c) => c.json(await emulators.remove(c.get("actor"), c.req.valid("param").job_number)),
    );
}
