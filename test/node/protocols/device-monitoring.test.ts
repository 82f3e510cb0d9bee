import { describe, expect, it } from "vitest";
import { formatMetricName } from "../../../src/protocols/metric-name.ts";
import { decodeDeviceMonitoring } from "../../../src/protocols/openwisp/device-monitoring.ts";

const REPORT = {
  type: "DeviceMonitoring",
  general: { hostname: "ap-1", local_time: 1_700_000_000, uptime: 3_600 },
  resources: {
    load: [0.1, 0.2, 0.3],
    memory: { total: 1_000, free: 400 },
    cpus: 2,
    disk: [{ mount_point: "/overlay", filesystem: "overlayfs", used_percent: 12 }],
  },
  interfaces: [
    {
      ...{ name: "wlan0", type: "wireless", up: true, mac: "00:11:22:33:44:55", mtu: 1_500 },
      wireless: { ssid: "x", channel: 36, signal: -40, clients: [{ mac: "a" }, { mac: "b" }] },
      statistics: { rx_bytes: 10, tx_bytes: 20 },
      addresses: [{ address: "10.0.0.1", mask: 24 }],
    },
    { name: "wlan1", up: false, wireless: { channel: 1 } },
  ],
  dhcp_leases: [{ expiry: 1 }],
};

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const decode = (value: unknown, time?: string) => decodeDeviceMonitoring(encode(value), time);

describe("a report of OpenWISP's agent", () => {
  it("gives the numbers of the device, its resources and its interfaces", () => {
    const { points, rejected } = decode(REPORT);
    const values = Object.fromEntries(points.map(({ name, labels, value }) => [formatMetricName(name, labels), value]));
    expect(values).toEqual({
      "general.local_time": 1_700_000_000,
      "general.uptime": 3_600,
      "resources.load_1": 0.1,
      "resources.load_5": 0.2,
      "resources.load_15": 0.3,
      "resources.memory.total": 1_000,
      "resources.memory.free": 400,
      "resources.cpus": 2,
      'resources.disk.used_percent{mount_point="/overlay"}': 12,
      'interfaces.up{interface="wlan0"}': 1,
      'interfaces.mtu{interface="wlan0"}': 1_500,
      'interfaces.wireless.channel{interface="wlan0"}': 36,
      'interfaces.wireless.signal{interface="wlan0"}': -40,
      'interfaces.wireless.clients{interface="wlan0"}': 2,
      'interfaces.statistics.rx_bytes{interface="wlan0"}': 10,
      'interfaces.statistics.tx_bytes{interface="wlan0"}': 20,
      'interfaces.up{interface="wlan1"}': 0,
      'interfaces.wireless.channel{interface="wlan1"}': 1,
      'interfaces.wireless.clients{interface="wlan1"}': 0,
    });
    expect(rejected).toEqual([]);
    expect(points.every(({ tsMs }) => tsMs === undefined)).toBe(true);
  });

  it("has the time of the query", () => {
    const { points } = decode(REPORT, "16-11-2026_12:59:04.000000");
    expect(points[0]?.tsMs).toBe(Date.UTC(2026, 10, 16, 12, 59, 4));
    expect(decode(REPORT, "16-11-2026_12:59:04.987654").points[0]?.tsMs).toBe(Date.UTC(2026, 10, 16, 12, 59, 4, 987));
    for (const time of ["", "2026-11-16", "32-13-2026_12:59:04.000000", "16-11-2026_12:59"]) {
      expect(() => decode(REPORT, time)).toThrow(expect.objectContaining({ code: "malformed" }));
    }
  });

  it("may have parts that are missing or of other types", () => {
    const { points } = decode({
      type: "DeviceMonitoring",
      general: [],
      resources: { load: 1, disk: {} },
      interfaces: [1, {}],
    });
    expect(points).toMatchObject([{ name: "resources.load", value: 1 }]);
  });

  it("is malformed if it is no such report", () => {
    for (const value of [null, [], {}, { type: "NetworkGraph" }]) {
      expect(() => decode(value)).toThrow(expect.objectContaining({ code: "malformed" }));
    }
    expect(() => decodeDeviceMonitoring(Uint8Array.of(0x7b), undefined)).toThrow("not JSON");
    expect(() => decodeDeviceMonitoring(Uint8Array.of(0xff), undefined)).toThrow("not JSON");
  });

  it("rejects values with long names", () => {
    const general = { ["x".repeat(3_000)]: { a: 1 } };
    expect(decode({ type: "DeviceMonitoring", general })).toMatchObject({
      points: [],
      rejected: [{ reason: "has a name of more than 256 characters with its labels" }],
    });
  });

  it("rejects an object with a long name as a whole", () => {
    const values = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`v${i}`, 1]));
    const { points, rejected } = decode({ ...REPORT, general: { ["k".repeat(150)]: { ["k".repeat(150)]: values } } });
    expect(points.some(({ name }) => name.startsWith("general."))).toBe(false);
    expect(rejected).toMatchObject([{ name: `general.${"k".repeat(92)}…` }]);
  });

  it("ignores what is nested very deeply", () => {
    let general: unknown = 1;
    for (let depth = 0; depth < 100; depth += 1) general = { a: general };
    expect(decode({ type: "DeviceMonitoring", general }).points).toEqual([]);
  });
});
