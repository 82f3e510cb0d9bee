import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { getOpenWispScript, OpenWispDevice } from "../../scripts/harness/collectors/openwisp-device.ts";
import { until } from "../../scripts/harness/product.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

const ICINGA = "/usr/sbin/icinga2";
const WITHIN_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "collectors-"));
const script = await getOpenWispScript(folder);

/** Unmodified collectors of other systems next to the product. Those that are not installed are skipped. */
describe("The product gets every value, once and at its time,", () => {
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

  const post = async (path: string, body: object): Promise<void> =>
    expect((await service.send("POST", path, admin, body)).status, path).toBe(200);

  /** Returns all numbers of an agent as `metric`, `tsMs` and `value`, in the order of metric and time. */
  const storedOf = async (apId: string): Promise<[metric: string, tsMs: number, value: number][]> => {
    const path = `/api/v1/metrics/download?agent=${apId}&format=ndjson&end_time=${Date.now() + 60_000}`;
    const lines = (await (await service.send("GET", path, admin)).text()).split("\n").filter((line) => line !== "");
    const points = lines.map((line) => JSON.parse(line) as { time: string; metric: string; value: number });
    return points.map(({ metric, time, value }) => [metric, Date.parse(time), value]);
  };

  it.skipIf("missing" in script)(
    `from OpenWISP's agent, also after the service was away${"missing" in script ? ` (skipped: ${script.missing})` : ""}`,
    async () => {
      const [apId, password] = [`openwrt-${randomUUID()}`, `${SECRET_MARK}-of-an-agent`];
      await post("/api/v1/agents/", { ap_id: apId, password, configuration: {} });
      const port = await anyFreePort();
      const url = `http://127.0.0.1:${port}/api/v1/openwisp`;
      const device = new OpenWispDevice("path" in script ? script.path : "", { url, apId, password }, 2);
      try {
        await until(() => device.reports.length >= 3 && device.responses.length > 0, WITHIN_MS);
        expect(new Set(device.responses.map(({ status }) => status))).toEqual(new Set([0]));
        // Back again, but the first response is lost.
        const proxy = await cuttingProxy(Number(new URL(service.url).port), 1, port);
        await until(() => device.acknowledged >= 4, WITHIN_MS);
        await device.stopCollecting();
        await until(() => device.isEmpty, WITHIN_MS);
        await proxy.close();
        expect(proxy.cuts).toBe(1);
        const expected = device.reports.flatMap(({ tsMs, points }) =>
          points.map(({ metric, value }) => [metric, tsMs, value]),
        );
        expect(expected.length).toBeGreaterThanOrEqual(4 * 5);
        const stored = await storedOf(apId);
        expect(stored).toHaveLength(expected.length);
        expect(stored).toEqual(expect.arrayContaining(expected));
      } finally {
        device.stop();
      }
    },
  );

  it.skipIf(!existsSync(ICINGA))(
    `from Debian's icinga2${existsSync(ICINGA) ? "" : ` (skipped: ${ICINGA} is not installed)`}`,
    async () => {
      const [apId, app, key] = [`icinga-${randomUUID()}`, `icinga-${randomUUID()}`, `${SECRET_MARK}-of-icinga2`];
      await post("/api/v1/agents/", { ap_id: apId, password: key, configuration: {} });
      const permissions = { write: true, agent_label: "hostname" };
      await post("/api/v1/third_party_apps/", { app_name: app, api_key: key, permissions });
      const record = await startIcinga(supervisor, { url: service.url, apId, token: `${app}:${key}` });

      await until(() => record().length >= 5, WITHIN_MS);
      const checks = record();
      const metrics = Object.entries({ "load 1": 1, rx: 1, rtt: 1_000, "free /": 1 });
      const namesOf = (label: string) => `values.value{metric="${label}",service="radio"}`;
      const expected = metrics.flatMap(([label, divisor]) =>
        checks.map(({ atS, values }) => [namesOf(label), atS, (values[label] ?? Number.NaN) / divisor] as const),
      );
      const valuesOf = (points: readonly (readonly [string, number, number])[], metric: string): number[] =>
        points.filter(([name]) => name === metric).map(([, , value]) => value);
      await until(async () => valuesOf(await storedOf(apId), namesOf("rx")).length >= checks.length, WITHIN_MS);
      const stored = await storedOf(apId);
      for (const [label] of metrics) {
        const metric = namesOf(label);
        expect(valuesOf(stored, metric).slice(0, checks.length), label).toEqual(valuesOf(expected, metric));
      }
      // It notes the second in which a check ended, the writer that in which it was processed.
      const times = stored.filter(([metric]) => metric === namesOf("rx")).map(([, tsMs]) => tsMs);
      for (const [i, { atS }] of checks.entries())
        expect(Math.abs((times[i] ?? 0) / 1_000 - atS)).toBeLessThanOrEqual(1);
      const thresholds = stored.filter(([metric]) => metric === 'values.warn{metric="load 1",service="radio"}');
      expect(new Set(thresholds.map(([, , value]) => value))).toEqual(new Set([0.75]));
    },
  );
});

interface IcingaCheck {
  atS: number;
  values: Record<string, number>;
}

/** Starts icinga2 with a check every two seconds: it writes times in whole seconds. Returns a function that reads its own record of the results. */
async function startIcinga(
  supervisor: Supervisor,
  { url, apId, token }: { url: string; apId: string; token: string },
): Promise<() => IcingaCheck[]> {
  const home = join(folder, "icinga");
  for (const name of ["data", "log", "cache", "run", "spool"]) mkdirSync(join(home, name), { recursive: true });
  const check = join(home, "check");
  // Units: bytes, milliseconds, percent.
  writeFileSync(
    check,
    `#!/bin/sh
n=$(date +%s%N | tail -c 7)
echo "OK | 'load 1'=0.$n;0.75;0.9;0;1 rx=$(date +%s)B rtt=$(date +%S)ms 'free /'=33.25%"
`,
    { mode: 0o755 },
  );
  const config = join(home, "icinga2.conf");
  const { hostname, port } = new URL(url);
  writeFileSync(
    config,
    `include <itl>
object IcingaApplication "app" { }
object CheckerComponent "checker" { }
object Influxdb2Writer "controller" {
  host = "${hostname}"
  port = ${port}
  organization = "any"
  bucket = "any"
  auth_token = "${token}"
  flush_interval = 1s
  enable_send_thresholds = true
}
object PerfdataWriter "record" {
  service_perfdata_path = "${home}/spool/service"
  service_temp_path = "${home}/spool/current"
  host_perfdata_path = "${home}/spool/host"
  host_temp_path = "${home}/spool/current-host"
  service_format_template = "$service.last_check$\\t$service.perfdata$"
  rotation_interval = 1s
}
object CheckCommand "values" { command = [ "${check}" ] }
object Host "${apId}" { check_command = "dummy" }
object Service "radio" {
  host_name = "${apId}"
  check_command = "values"
  check_interval = 2s
  retry_interval = 2s
}
`,
  );
  const group = spawnSync("id", ["-gn"], { encoding: "utf8" }).stdout.trim();
  const constants = {
    ...{ RunAsUser: userInfo().username, RunAsGroup: group, DataDir: `${home}/data`, LogDir: `${home}/log` },
    ...{ CacheDir: `${home}/cache`, InitRunDir: `${home}/run`, SpoolDir: `${home}/spool` },
  };
  await supervisor.start({
    name: "icinga2",
    command: ICINGA,
    args: ["daemon", "-c", config, ...Object.entries(constants).flatMap(([name, value]) => ["-D", `${name}=${value}`])],
    ready: async (lines) => lines.some((line) => line.includes("Activated all objects")),
    display: () => undefined,
  });
  return () => {
    const texts = globSync(`${home}/spool/service.*`)
      .toSorted()
      .map((file) => readFileSync(file, "utf8"));
    const lines = texts
      .join("")
      .split("\n")
      .filter((line) => line !== "");
    return lines.map((line) => {
      const [atS, perfdata = ""] = line.split("\t");
      const pairs = [...perfdata.matchAll(/(?:'([^']+)'|([^\s=']+))=([\d.]+)/g)];
      const values = pairs.map(([, quoted, plain, value]) => [quoted ?? plain ?? "", Number(value)]);
      return { atS: Number(atS), values: Object.fromEntries(values) };
    });
  };
}
