import { parseJson } from "../json.ts";
import { type Labels, shortened } from "../metric-name.ts";
import { type Decoded, isTooLong, NAME_TOO_LONG, PointCollector } from "../point.ts";
import { malformed } from "../protocol-error.ts";

/**
 * NetJSON DeviceMonitoring, the report of OpenWISP's agent. Its numbers and booleans become points, named by their path: `general.uptime`,
 * `resources.memory.free`. Values of an interface or a disk have it as a label: `interfaces.statistics.rx_bytes{interface="wlan0"}`.
 */

type Fields = Record<string, unknown>;

/** Objects in objects. The format has three levels. */
const MAX_DEPTH = 8;
/** `resources.load` is a list of the averages over these minutes. */
const LOAD_MINUTES = [1, 5, 15];

export function decodeDeviceMonitoring(body: Uint8Array, time: string | undefined): Decoded {
  const report = parse(body);
  if (report.type !== "DeviceMonitoring") throw malformed("The body is no NetJSON DeviceMonitoring");
  const tsMs = time === undefined ? undefined : parseTime(time);
  const collector = new PointCollector();
  const add = (value: unknown, name: string, labels: Labels, depth = 0): void => {
    if (typeof value === "number" || typeof value === "boolean") {
      collector.add({ name, labels, tsMs, value: Number(value) });
    } else if (isObject(value) && isTooLong(name)) {
      // The names of all its values would be too long as well.
      collector.reject({ name: shortened(name), reason: NAME_TOO_LONG });
    } else if (isObject(value) && depth < MAX_DEPTH) {
      for (const [key, member] of Object.entries(value))
        add(member, `${name}.${key.toWellFormed()}`, labels, depth + 1);
    }
  };
  const { general, resources, interfaces } = report;
  add(general, "general", {});
  add(resources, "resources", {});
  if (isObject(resources)) {
    add(loadOf(resources.load), "resources", {});
    for (const disk of objectsOf(resources.disk))
      add(disk, "resources.disk", labelled("mount_point", disk.mount_point));
  }
  for (const one of objectsOf(interfaces)) {
    const labels = labelled("interface", one.name);
    add(one, "interfaces", labels);
    // The agent omits the list if it is empty.
    if (isObject(one.wireless)) add({ clients: countOf(one.wireless.clients) }, "interfaces.wireless", labels);
  }
  return collector;
}

function parse(body: Uint8Array): Fields {
  const report = parseJson(body, "The body is not JSON");
  if (!isObject(report)) throw malformed("The body is no NetJSON DeviceMonitoring");
  return report;
}

/** Parses `31-12-2026_23:59:59.000000`, in UTC. */
function parseTime(time: string): number {
  const [, day = "", month = "", year = "", clock = ""] =
    /^(\d{2})-(\d{2})-(\d{4})_(\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)$/.exec(time) ?? [];
  const tsMs = Math.floor(Date.parse(`${year}-${month}-${day}T${clock.slice(0, "23:59:59.999".length)}Z`));
  if (Number.isNaN(tsMs)) throw malformed("The time must have the form 31-12-2026_23:59:59.000000");
  return tsMs;
}

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const objectsOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isObject) : []);

const labelled = (key: string, value: unknown): Labels =>
  typeof value === "string" && value !== "" ? { [key]: value.toWellFormed() } : {};

const loadOf = (load: unknown): Fields =>
  Array.isArray(load) ? Object.fromEntries(LOAD_MINUTES.map((minutes, i) => [`load_${minutes}`, load[i]])) : {};

function countOf(clients: unknown): number {
  if (Array.isArray(clients)) return clients.length;
  return isObject(clients) ? Object.keys(clients).length : 0;
}
