import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { textFile } from "../http/text-file.ts";
import { body, csv, path, query } from "../http/validation.ts";
import { AgentPath } from "../schemas/agent.ts";
import {
  ImportQuery,
  LabelChanges,
  LabelledAgent,
  LabelSummary,
  LabelsChanged,
  LabelsCsv,
  LabelsQuery,
  LabelsRequest,
} from "../schemas/labels.ts";
import { SelectorQuery } from "../schemas/selector.ts";
import type { Services } from "../services.ts";

const BASE = "/api/v1/labels";
const TAG = "Labels";
const BUSY = { 409: "Other requests keep changing the same labels" };
const GRANTS = "A manager's grants must include the agents before and after the change.";

export function labelsRoutes(operation: Operation, { labelling }: Pick<Services, "labelling">) {
  return new Hono<AppEnv>()
    .get(
      "/api/v1/agents/:ap_id/labels",
      operation({
        action: "agents.read",
        tag: TAG,
        summary: "Get the labels of an agent",
        response: LabelledAgent,
        errorResponses: { 404: "The agent does not exist" },
      }),
      path(AgentPath),
      async (c) => c.json(await labelling.read(c.get("actor"), c.req.valid("param").ap_id)),
    )
    .put(
      "/api/v1/agents/:ap_id/labels",
      operation({
        action: "labels.update",
        tag: TAG,
        summary: "Change the labels of an agent",
        description: `Null removes a label. Labels that are absent stay unchanged. The service sets \`technology\`, \`emulated\` and \`owner\`. ${GRANTS}`,
        response: LabelledAgent,
        errorResponses: { ...BUSY, 404: "The agent does not exist" },
      }),
      path(AgentPath),
      body(LabelChanges),
      async (c) => c.json(await labelling.update(c.get("actor"), c.req.valid("param").ap_id, c.req.valid("json"))),
    )
    .get(
      BASE,
      operation({
        action: "labels.list",
        tag: TAG,
        summary: "List labels and how many agents have them",
        description: "Sorted by key. Returns up to 1,000 keys.",
        response: z.array(LabelSummary),
      }),
      query(LabelsQuery),
      async (c) => c.json(await labelling.list(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      BASE,
      operation({
        action: "labels.update_many",
        tag: TAG,
        summary: "Change the labels of many agents",
        description:
          `Changes all agents that the selector selects, up to 20,000. Changes none if one of them must not change. ${GRANTS} Use ` +
          "`dry_run` to learn how many agents would change.",
        response: LabelsChanged,
        errorResponses: BUSY,
      }),
      body(LabelsRequest),
      async (c) => c.json(await labelling.updateMany(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${BASE}/export`,
      operation({
        action: "labels.export",
        tag: TAG,
        summary: "Export labels as CSV",
        description:
          "The first line is `ap_id` and the keys of labels. Each other line has the name of an agent and its labels. Without the labels that " +
          "the service sets.",
        response: z.string(),
        produces: "text/csv",
      }),
      query(SelectorQuery),
      async (c) =>
        await textFile(c, labelling.exportCsv(c.get("actor"), c.req.valid("query").selector), {
          type: "text/csv; charset=utf-8",
          name: "labels.csv",
        }),
    )
    .post(
      `${BASE}/import`,
      operation({
        action: "labels.import",
        tag: TAG,
        summary: "Import labels from CSV",
        description:
          "Takes a file in the form of the export, with up to 20,000 agents. If a line is not valid, nothing changes, and the response has one " +
          `item for each such line. ${GRANTS}`,
        response: LabelsChanged,
        errorResponses: BUSY,
      }),
      query(ImportQuery),
      csv(LabelsCsv),
      async (c) => c.json(await labelling.importCsv(c.get("actor"), c.req.valid("json"), c.req.valid("query").dry_run)),
    );
}
