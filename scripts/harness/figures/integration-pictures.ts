import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { print } from "../../../src/programs/shared/cli.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import type { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { visit } from "../browser.ts";
import type { ApiClient } from "../client.ts";
import { PROMETHEUS, startTool } from "../collectors/prometheus.ts";

/** Pictures of docs/integrations.md, with Debian's Prometheus. */

/** The access point that Prometheus writes for. */
export const WRITTEN_AP = "edge-router-1";
const WRITTEN =
  "process_cpu_seconds_total|process_resident_memory_bytes|go_goroutines|process_open_fds|scrape_duration_seconds";
const LOAD_BY_TECHNOLOGY =
  "quantile by (technology) (0.95, load * on (instance) group_left (technology) access_point_info)";

/** Starts a Prometheus that writes its own metrics for an access point and reads those of all. Returns its URL, if it is installed. */
export async function startWriterAndReader(
  client: ApiClient,
  token: string,
  supervisor: Supervisor,
  folder: string,
): Promise<string | undefined> {
  if (!existsSync(PROMETHEUS)) {
    print(`No pictures of integrations: ${PROMETHEUS} is not installed.`);
    return undefined;
  }
  const [name, key, port] = ["prometheus", crypto.randomUUID(), await anyFreePort()];
  const body = { app_name: name, api_key: key, permissions: { write: true, register: true } };
  await client.call("/api/v1/third_party_apps/", { token, body });
  const access = `basic_auth: { username: ${name}, password: ${key} }`;
  const config = `scrape_configs:
  - job_name: node
    scrape_interval: 5s
    static_configs: [{ targets: ["127.0.0.1:${port}"], labels: { instance: ${WRITTEN_AP} } }]
remote_write:
  - url: ${client.url}/api/v1/prometheus/write
    ${access}
    write_relabel_configs: [{ source_labels: [__name__], regex: ${WRITTEN}, action: keep }]
remote_read:
  - url: ${client.url}/api/v1/prometheus/read
    ${access}
    read_recent: true
`;
  return (await startTool(supervisor, folder, { config, port })).url;
}

/** Takes a picture of Prometheus' own page with a query over remote read. */
export async function graphPicture(browser: Browser, url: string, file: string): Promise<void> {
  const graph = { expr: LOAD_BY_TECHNOLOGY, tab: "0", range_input: "5m", stacked: "0" };
  const query = new URLSearchParams(Object.entries(graph).map(([key, value]) => [`g0.${key}`, value]));
  const viewport = { width: 1040, height: 850 };
  const { page, close } = await visit(browser, `${url}/classic/graph?${query}`, { deviceScaleFactor: 1, viewport });
  await page.locator(".legend .line").first().waitFor();
  await page.screenshot({ path: join(ROOT, "docs", file) });
  print(`docs/${file}`);
  await close();
}
