import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { PROMETHEUS, queryPrometheus, startTool } from "../../scripts/harness/collectors/prometheus.ts";
import { TECHNOLOGIES } from "../../src/emulator/models/access-point.ts";
import { createSite, stepSite } from "../../src/emulator/models/site.ts";
import { ROOT } from "../../src/programs/shared/system.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

const Dashboard = z.object({
  panels: z.array(
    z.object({
      title: z.string(),
      targets: z.array(z.object({ expr: z.string(), instant: z.boolean().optional() })),
    }),
  ),
  templating: z.object({
    list: z.array(
      z.object({
        name: z.string(),
        query: z.union([z.string(), z.object({ query: z.string() })]),
        regex: z.string().optional(),
        allValue: z.string().optional(),
      }),
    ),
  }),
});
const dashboard = Dashboard.parse(JSON.parse(readFileSync(join(ROOT, "docs/grafana/controller.json"), "utf8")));

const [STEP_S, SPAN_S] = [10, 180];

/** As Grafana writes the values of a variable with several choices: a regular expression in a string of PromQL. */
const inRegex = (values: string[]): string =>
  `(${values.map((value) => value.replace(/[\\^$.*+?()[\]{}|]/g, "\\\\$&")).join("|")})`;

/** Replaces the variables of an expression. */
const substitute = (expression: string, variables: Record<string, string>): string =>
  Object.entries({ __rate_interval: "1m", ...variables }).reduce(
    (text, [name, value]) => text.replaceAll(`$${name}`, () => value),
    expression,
  );

const MISSING = existsSync(PROMETHEUS) ? "" : ` (skipped: ${PROMETHEUS} is not installed)`;

/** Grafana itself is not in Debian, so its queries are sent as it sends them. */
describe.skipIf(MISSING !== "")(`The Grafana dashboard on a stock Prometheus with remote read${MISSING}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "grafana-"));
  const supervisor = new Supervisor();
  const site = `uk/e2e.${randomUUID()}`;
  const accessPoints = TECHNOLOGIES.map((technology) => {
    return { apId: `${technology}.${randomUUID()}`, technology, numDevices: 20 };
  });
  const endS = Math.floor(Date.now() / 1_000);
  let url: string;

  beforeAll(async () => {
    const service = new ServiceClient((await sharedProduct()).url);
    const admin = await service.tokenOf(ADMIN);
    const samples = new Map(accessPoints.map(({ apId }): [string, object[]] => [apId, []]));
    let state = createSite({ longitudeDeg: -2, accessPoints }, 1);
    for (let ts = (endS - SPAN_S) * 1_000; ts <= endS * 1_000; ts += STEP_S * 1_000) {
      const step = stepSite(state, ts);
      state = step.site;
      for (const { apId, sample } of step.samples) samples.get(apId)?.push({ ts, payload: sample });
    }
    for (const { apId, technology } of accessPoints) {
      const password = `${SECRET_MARK} of an agent`;
      const configuration = { access_point_type: technology };
      await service.post("/api/v1/agents/", admin, { ap_id: apId, password, configuration, labels: { site } });
      const token = await service.tokenOf({ username: apId, password }, "agent");
      await service.post("/api/v1/agent_update/update", token, { samples: samples.get(apId) });
    }
    const [name, key] = [`grafana-${randomUUID()}`, `${SECRET_MARK} of Grafana`];
    await service.post("/api/v1/third_party_apps/", admin, { app_name: name, api_key: key, permissions: {} });
    const config = `remote_read:
  - url: ${service.url}/api/v1/prometheus/read
    read_recent: true
    basic_auth: { username: "${name}", password: "${key}" }
`;
    ({ url } = await startTool(supervisor, folder, { config }));
  });

  afterAll(async () => {
    await supervisor.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Returns the choices of a variable: what its regular expression finds in the result of its query. */
  const choicesOf = async (name: string, variables: Record<string, string>): Promise<string[]> => {
    const { query, regex = "" } = dashboard.templating.list.find((one) => one.name === name) ?? { query: "" };
    const text = typeof query === "string" ? query : query.query;
    const [, expression = ""] = /^query_result\((.*)\)$/.exec(text) ?? [];
    const result = await queryPrometheus(url, substitute(expression, variables), { time: endS });
    return result.flatMap(({ metric, value }) => {
      const labels = Object.entries(metric).map(([key, label]) => `${key}="${label}"`);
      const series = `{${labels.join(",")}} ${value?.[1]} ${endS * 1_000}`;
      return new RegExp(regex.slice(1, -1)).exec(series)?.[1] ?? [];
    });
  };

  it("offers the sites and access points as choices", async () => {
    expect(await choicesOf("site", {})).toContain(site);
    const choices = await choicesOf("instance", { site: inRegex([site]) });
    expect(choices.toSorted()).toEqual(accessPoints.map(({ apId }) => apId).toSorted());
  });

  it.each([
    ["for all sites", { site: ".*", instance: ".*" }],
    [
      "for chosen ones",
      { site: inRegex([site, "another/site"]), instance: inRegex(accessPoints.map(({ apId }) => apId)) },
    ],
  ])("has data in every panel, %s", async (_, variables) => {
    expect(dashboard.panels.length).toBeGreaterThan(10);
    for (const { title, targets } of dashboard.panels) {
      for (const { expr, instant = false } of targets) {
        const time = instant ? { time: endS } : { start: endS - 60, end: endS, step: 15 };
        const series = await queryPrometheus(url, substitute(expr, variables), time);
        expect(series.length, title).toBeGreaterThan(0);
        const values = series.flatMap(({ value, values = [] }) => [...values, ...(value ? [value] : [])]);
        expect(
          values.every(([, text]) => Number.isFinite(Number(text))),
          title,
        ).toBe(true);
      }
    }
  });
});
