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
          "Makes an agent for each and has them run for `duration` seconds. How far that has come is told over the job's WebSocket. All or " +
          "nothing: where one location is not understood, nothing is made.",
        answer: SpinupQueued,
        errorResponses: {
          429: "More than 30 within a minute; or a quota is exceeded, which the detail names. Retry-After says when to try again",
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
        summary: "Towns whose names begin like this",
        description:
          "For a form that completes what is being typed. Each town once, by whichever of its names; the most populous first, cities " +
          "that have it as their own name before all others.",
        answer: z.array(PlaceSuggestion),
      }),
      query(PlacesQuery),
      async (c) => c.json(await emulators.places(c.get("actor"), c.req.valid("query"))),
    )
    .get(
      `${BASE}/`,
      operation({
        action: "emulator.list",
        tag: TAG,
        summary: "Emulator jobs that are running or about to",
        description: "The caller's own; an administrator sees everybody's.",
        answer: z.array(JobRecord),
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
          "Its owner and administrators can do this at any time, also when the emulation has ended or its agents are removed already.",
        answer: Ack,
        errorResponses: { 404: "There is no such job, or it was removed more than 30 days ago" },
      }),
      path(JobPath),
      async (c) => c.json(await emulators.remove(c.get("actor"), c.req.valid("param").job_number)),
    );
}
