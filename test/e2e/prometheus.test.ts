import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../scripts/harness/product.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

const [PROMETHEUS, ALERTMANAGER] = ["/usr/bin/prometheus", "/usr/bin/prometheus-alertmanager"];
const WITHIN_MS = 60_000;

interface AlertmanagerAlert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  status: { state: string };
  startsAt: string;
  endsAt: string;
}

/** Debian's Prometheus and Alertmanager next to the product. The tests are skipped if they are not installed. */
describe.skipIf(!existsSync(PROMETHEUS) || !existsSync(ALERTMANAGER))("Debian's", () => {
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

  const startTool = async (command: string, config: string, options: (port: number) => string[]): Promise<string> => {
    const name = randomUUID();
    const [port, file] = [await anyFreePort(), join(folder, `${name}.yml`)];
    writeFileSync(file, config);
    const url = `http://127.0.0.1:${port}`;
    await supervisor.start({
      name,
      command,
      args: [`--config.file=${file}`, `--web.listen-address=127.0.0.1:${port}`, ...options(port)],
      env: { PATH: process.env.PATH ?? "" },
      ready: async () => (await fetch(`${url}/-/ready`)).ok,
      display: () => undefined,
    });
    return url;
  };
  const post = async (path: string, body: object, token = admin): Promise<Record<string, string>> => {
    const response = await service.send("POST", path, token, body);
    expect(response.status, path).toBe(200);
    return (await response.json()) as Record<string, string>;
  };

  it("Alertmanager gets an alert when it fires, and its end", async () => {
    const config = "route:\n  receiver: none\nreceivers:\n  - name: none\n";
    const options = [`--storage.path=${join(folder, "alertmanager")}`, "--cluster.listen-address="];
    const url = await startTool(ALERTMANAGER, config, () => options);
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

  it("Prometheus scrapes the service", async () => {
    const { host } = new URL(service.url);
    const config = `scrape_configs:
  - job_name: controller
    scrape_interval: 1s
    authorization: { credentials: "${admin}" }
    static_configs: [{ targets: ["${host}"] }]
`;
    const url = await startTool(PROMETHEUS, config, () => [`--storage.tsdb.path=${join(folder, "tsdb")}`]);
    const query = async (expression: string): Promise<number[]> => {
      const response = await fetch(`${url}/api/v1/query?${new URLSearchParams({ query: expression })}`);
      const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
      return data.result.map(({ value: [, value] }) => Number(value));
    };
    await until(async () => (await query("up == 1")).length === 1, WITHIN_MS);
    const names = await query('count({job="controller", __name__=~"controller_.*"})');
    expect(names[0]).toBeGreaterThan(10);
    expect((await query("scrape_samples_post_metric_relabeling"))[0]).toBeGreaterThan(10);
  });
});
