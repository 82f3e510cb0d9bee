import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ALERTMANAGER,
  PROMETHEUS,
  PROMTOOL,
  queryPrometheus,
  startTool,
} from "../../scripts/harness/collectors/prometheus.ts";
import { run, until } from "../../scripts/harness/product.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

const WITHIN_MS = 60_000;
const MISSING = [PROMETHEUS, ALERTMANAGER, PROMTOOL].filter((path) => !existsSync(path));

/** Rates, quantiles over labels, subqueries, and the like. */
const QUERIES = [
  "up",
  "process_resident_memory_bytes",
  "rate(prometheus_tsdb_head_samples_appended_total[10s])",
  "sum by (job) (rate(prometheus_http_requests_total[10s]))",
  "histogram_quantile(0.9, sum by (le) (rate(prometheus_http_response_size_bytes_bucket[15s])))",
  "max_over_time(go_goroutines[10s])",
  "avg_over_time(rate(prometheus_tsdb_head_samples_appended_total[5s])[10s:1s])",
  "quantile by (job) (0.5, go_memstats_alloc_bytes)",
  "topk(3, prometheus_http_requests_total)",
  'count by (__name__) ({__name__=~"go_mem.*"})',
];

interface AlertmanagerAlert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  status: { state: string };
  startsAt: string;
  endsAt: string;
}

/** Debian's Prometheus and Alertmanager next to the product. The tests are skipped if they are not installed. */
describe.skipIf(MISSING.length > 0)(
  `Debian's${MISSING.map((path) => ` (skipped: ${path} is not installed)`).join("")}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), "prometheus-"));
    const supervisor = new Supervisor();
    let service: ServiceClient;
    let admin: string;

    beforeAll(async () => {
      service = new ServiceClient((await sharedProduct()).url);
      admin = await service.tokenOf(ADMIN);
    });

    afterAll(async () => {
      await supervisor.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const post = async (path: string, body: object, token = admin) =>
      (await service.post(path, token, body)) as Record<string, string>;

    it("Alertmanager gets an alert when it fires, and its end", async () => {
      const config = "route:\n  receiver: none\nreceivers:\n  - name: none\n";
      const args = [`--storage.path=${join(folder, "alertmanager")}`, "--cluster.listen-address="];
      const { url } = await startTool(supervisor, folder, { command: ALERTMANAGER, config, args });
      const [site, name, password] = [randomUUID(), randomUUID(), `${SECRET_MARK} of an agent`];
      await post("/api/v1/agents/", { ap_id: name, password, configuration: {}, labels: { site } });
      const token = await service.tokenOf({ username: name, password }, "agent");
      const subscription = await post("/api/v1/subscriptions/", {
        name,
        target: { kind: "alertmanager", address: url },
        filter: { selector: `site=${site}` },
      });
      const rule = await post("/api/v1/alerts/rules", {
        name: "High load",
        spec: {
          selector: `site=${site}`,
          condition: { metric: "load", op: ">", value: 0.9 },
          severity: "critical",
          labels: { team: "radio" },
          text: "{{ap_id}} has a load of {{value}}",
        },
      });
      const current = async (): Promise<AlertmanagerAlert[]> =>
        (await (await fetch(`${url}/api/v2/alerts?filter=site="${site}"`)).json()) as AlertmanagerAlert[];
      try {
        await post("/api/v1/agent_update/update", { payload: { load: 0.97 } }, token);
        await until(async () => (await current()).length > 0, WITHIN_MS);
        expect(await current()).toMatchObject([
          {
            labels: { alertname: "High load", ap_id: name, site, team: "radio", severity: "critical" },
            annotations: { summary: `${name} has a load of 0.97` },
            status: { state: "active" },
          },
        ]);
        await post("/api/v1/agent_update/update", { payload: { load: 0.1 } }, token);
        // It lists alerts that have not ended.
        await until(async () => (await current()).length === 0, WITHIN_MS);
      } finally {
        await service.send("DELETE", `/api/v1/subscriptions/${subscription.id}`, admin);
        await service.send("DELETE", `/api/v1/alerts/rules/${rule.id}`, admin);
      }
    });

    it("Prometheus writes its samples, and another one answers PromQL from them with the same values", async () => {
      const [name, key] = [`prometheus-${randomUUID()}`, `${SECRET_MARK} of Prometheus`];
      const permissions = { write: true, register: true };
      await post("/api/v1/third_party_apps/", { app_name: name, api_key: key, permissions });
      const login = `basic_auth: { username: "${name}", password: "${key}" }`;
      const port = await anyFreePort();
      const [instance, job] = [`self-${randomUUID()}`, "self"];
      const writing = `scrape_configs:
  - job_name: ${job}
    scrape_interval: 1s
    static_configs: [{ targets: ["127.0.0.1:${port}"], labels: { instance: "${instance}" } }]
remote_write:
  - url: ${service.url}/api/v1/prometheus/write
    ${login}
    queue_config: { batch_send_deadline: 1s }
`;
      const reading = `remote_read:
  - url: ${service.url}/api/v1/prometheus/read
    ${login}
    read_recent: true
`;
      const { url: writer } = await startTool(supervisor, folder, { config: writing, port });
      const { url: reader } = await startTool(supervisor, folder, { config: reading });
      const ask = async (url: string, query: string, time: number): Promise<string[]> =>
        (await queryPrometheus(url, query, { time })).map((one) => JSON.stringify(one)).toSorted();
      const startedS = Math.floor(Date.now() / 1000);
      const SPAN_S = 20;
      await until(() => Date.now() / 1000 > startedS + SPAN_S + 2, WITHIN_MS, 250);
      const atS = startedS + SPAN_S;
      // Everything that was scraped until then is written.
      const scrapes = `count_over_time(up{job="${job}"}[${SPAN_S}s])`;
      const expectedScrapes = await ask(writer, scrapes, atS);
      await expect
        .poll(() => ask(reader, scrapes, atS), { timeout: WITHIN_MS, interval: 500 })
        .toEqual(expectedScrapes);
      for (const query of QUERIES) {
        const expected = await ask(writer, query, atS);
        expect(expected.length, query).toBeGreaterThan(0);
        expect(await ask(reader, query, atS), query).toEqual(expected);
      }
    });

    it("Prometheus scrapes the service", async () => {
      const { host } = new URL(service.url);
      const config = `scrape_configs:
  - job_name: controller
    scrape_interval: 1s
    authorization: { credentials: "${admin}" }
    static_configs: [{ targets: ["${host}"] }]
`;
      const { url } = await startTool(supervisor, folder, { config });
      const query = async (expression: string): Promise<number[]> =>
        (await queryPrometheus(url, expression)).map(({ value }) => Number(value?.[1]));
      await until(async () => (await query("up == 1")).length === 1, WITHIN_MS);
      const names = await query('count({job="controller", __name__=~"controller_.*"})');
      expect(names[0]).toBeGreaterThan(10);
      expect((await query("scrape_samples_post_metric_relabeling"))[0]).toBeGreaterThan(10);
    });

    describe("promtool", () => {
      /** Returns what it says about the latest values of a new agent that has reported a payload. */
      const checkMetrics = async (payload: Record<string, number>): Promise<string[]> => {
        const [site, name, password] = [`uk/${randomUUID()}`, `ap:1.${randomUUID()}`, `${SECRET_MARK} of an agent`];
        const labels = { site, "floor.no/x-y": "+1@a", "1st": "a:b" };
        await post("/api/v1/agents/", { ap_id: name, password, configuration: {}, labels });
        const token = await service.tokenOf({ username: name, password }, "agent");
        await post("/api/v1/agent_update/update", { payload }, token);
        const response = await service.send("GET", `/api/v1/metrics/export?selector=site%3D${site}`, admin);
        const text = await response.text();
        // All metrics, and the labels of the agent.
        expect(text.match(/^[^#]/gm)).toHaveLength(Object.keys(payload).length + 1);
        const { code, output } = await run(PROMTOOL, ["check", "metrics"], {}, text);
        expect(code === 0).toBe(output === "");
        return output.split("\n").filter((line) => line !== "");
      };

      it("has no complaint about awkward names, labels and values", async () => {
        const findings = await checkMetrics({
          load: 0.5,
          "cpu.idle": 98.6,
          "9 lives °": 1e300,
          U__x: -1e-300,
          'sent{dev="eth0",text="a\\"b\\\\c\\nd",instance="other",é="ü"}': 2 ** 53,
          requests_total: 1,
          'sizes_bucket{le="0.5"}': 1,
          sizes_count: 3,
          "not a label{x": 4,
        });
        expect(findings).toEqual([]);
      });

      it("only repeats to an operator which names do not follow the conventions of Prometheus", async () => {
        const findings = await checkMetrics({ "DRB.UEThpDl": 1, latency_ms: 2, "a:b": 3 });
        expect(findings).toEqual([
          "U__DRB_2e_UEThpDl metric names should be written in 'snake_case' not 'camelCase'",
          "a:b metric names should not contain ':'",
          "latency_ms metric names should not contain abbreviated units",
        ]);
      });
    });
  },
);
