import { parseMetricName } from "../protocols/metric-name.ts";

/**
 * Display names of metrics, with their units: 3GPP TS 28.552 for 5G, and names in common use for WiFi and LiFi. Lookups ignore case and
 * separators.
 */
const DISPLAY_NAMES: Record<string, string> = {
  // 5G
  "RRC.ConnMean": "Connected users, mean",
  "RRC.ConnMax": "Connected users, maximum",
  "DRB.UEThpDl": "Throughput per user, downlink (kbit/s)",
  "DRB.UEThpUl": "Throughput per user, uplink (kbit/s)",
  "RRU.PrbTotDl": "Resource blocks in use, downlink (%)",
  "RRU.PrbTotUl": "Resource blocks in use, uplink (%)",
  "DRB.AirIfDelayDl": "Air interface delay, downlink (0.1 ms)",
  "DRB.AirIfDelayUl": "Air interface delay, uplink (0.1 ms)",
  "MM.HoExeIntraReq": "Handovers tried",
  "MM.HoExeIntraSucc": "Handovers done",
  "PEE.AvgPower": "Power, mean (W)",
  // WiFi
  channel_utilisation_pct: "Channel utilisation (%)",
  channel_utilization_pct: "Channel utilisation (%)",
  noise_dbm: "Noise (dBm)",
  tx_power_dbm: "Transmit power (dBm)",
  rssi_dbm: "Signal strength (dBm)",
  associations: "Associated devices",
  mcs: "Modulation and coding scheme",
  rx_bytes: "Received (bytes)",
  tx_bytes: "Sent (bytes)",
  retries: "Retries",
  // LiFi
  optical_rx_power_dbm: "Optical power received (dBm)",
  snr_db: "Signal to noise (dB)",
  ambient_light_lux: "Ambient light (lx)",
  blockage: "Light path blocked",
  led_temperature_c: "LED temperature (°C)",
  // All
  load: "Load",
  quality: "Quality",
  users: "Users",
};

/** Last words of metric names that denote a unit. */
const UNITS: Record<string, string> = {
  bps: "bit/s",
  kbps: "kbit/s",
  mbps: "Mbit/s",
  gbps: "Gbit/s",
  bytes: "bytes",
  db: "dB",
  dbm: "dBm",
  hz: "Hz",
  mhz: "MHz",
  ghz: "GHz",
  ms: "ms",
  us: "µs",
  s: "s",
  seconds: "s",
  pct: "%",
  percent: "%",
  ratio: "ratio",
  w: "W",
  mw: "mW",
  v: "V",
  c: "°C",
  celsius: "°C",
  lux: "lx",
};

const normalize = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, "");
const byNormalizedName = new Map(Object.entries(DISPLAY_NAMES).map(([name, text]) => [normalize(name), text]));

/** Returns the display name of a metric. Derives it from the words of the metric's name if the table has none. */
export function displayNameOf(stored: string): string {
  const { name, labels } = parseMetricName(stored);
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? describeName(stored) : `${describeName(name)} · ${pairs.join(", ")}`;
}

function describeName(name: string): string {
  const listed = byNormalizedName.get(normalize(name));
  if (listed !== undefined) return listed;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .split(/[\s._:/-]+/)
    .filter((word) => word !== "");
  const unit = words.length > 1 ? UNITS[words.at(-1)?.toLowerCase() ?? ""] : undefined;
  const text = words.slice(0, unit === undefined ? undefined : -1).join(" ");
  const readable = text === "" ? name : `${text[0]?.toUpperCase()}${text.slice(1)}`;
  return unit === undefined ? readable : `${readable} (${unit})`;
}
