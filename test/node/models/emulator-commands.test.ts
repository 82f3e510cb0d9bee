import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TECHNOLOGIES } from "../../../src/emulator/models/access-point.ts";
import { COMMANDS } from "../../../src/emulator/models/commands.ts";
import { commandSite, type Site, stepSite } from "../../../src/emulator/models/site.ts";
import {
  HOUR_MS,
  MIDNIGHT_MS,
  mean,
  NAMES,
  oneOfEach,
  run,
  sampleOf,
  series,
  siteOf,
  usersOf,
} from "./site-support.ts";

describe("a command", () => {
  const EVENING_MS = MIDNIGHT_MS + 19 * HOUR_MS;
  const commanded = (site: Site, apId: string, command: string, nowMs = EVENING_MS): Site => {
    const outcome = commandSite(site, apId, command, nowMs);
    if ("refused" in outcome) throw new Error(outcome.refused);
    return outcome.site;
  };
  const averages = (site: Site, apId: string, field: string): number =>
    mean(series(run(site, { fromMs: EVENING_MS, steps: 200 }), apId, field));

  it.each(TECHNOLOGIES)("switches %s off and on", (technology) => {
    const off = commanded(siteOf(oneOfEach()), technology, "power_off");
    const offStep = stepSite(off, EVENING_MS);
    expect(sampleOf(offStep, technology)).toMatchObject({
      load: 0,
      users: 0,
      quality: 0,
      throughput_mbps: 0,
      powered: 0,
    });
    expect(sampleOf(offStep, technology)[NAMES[technology].utilisation]).toBe(0);
    expect(usersOf(offStep)).toBe(offStep.devicesPresent);
    const on = stepSite(commanded(offStep.site, technology, "power_on"), EVENING_MS + 1_000);
    expect(sampleOf(on, technology).users).toBeGreaterThan(10);
    expect(sampleOf(on, technology).load).toBeGreaterThan(0.1);
  });

  it.each(TECHNOLOGIES)("restarts %s, which is off for some seconds", (technology) => {
    const steps = run(commanded(siteOf(oneOfEach()), technology, "reboot"), { fromMs: EVENING_MS, steps: 20 });
    expect(series(steps, technology, "powered").join("")).toMatch(/^0{5,10}1{10,15}$/);
    expect(series(steps, technology, "load").slice(0, 5)).toEqual([0, 0, 0, 0, 0]);
  });

  it.each(TECHNOLOGIES)("lowers the power of %s, which reduces quality and increases load", (technology) => {
    const [usual, low] = [siteOf(oneOfEach()), commanded(siteOf(oneOfEach()), technology, "set_tx_power 12.5")];
    expect(averages(low, technology, "tx_power_dbm")).toBe(12.5);
    expect(averages(low, technology, "quality")).toBeLessThan(averages(usual, technology, "quality") - 0.1);
    expect(averages(low, technology, "load")).toBeGreaterThan(averages(usual, technology, "load"));
  });

  it.each([
    ["5G", 640_000],
    ["WiFi", 11],
    ["LiFi", 3],
  ] as const)("moves %s to channel %i with its interference", (technology, channel) => {
    const [usual, moved] = [siteOf(oneOfEach()), commanded(siteOf(oneOfEach()), technology, `set_channel ${channel}`)];
    expect(averages(moved, technology, "channel")).toBe(channel);
    expect(averages(moved, technology, "quality")).not.toBe(averages(usual, technology, "quality"));
  });

  it.each([
    ["explode", 'unknown command "explode"'],
    ["", 'unknown command ""'],
    ["POWER_OFF", 'unknown command "POWER_OFF"'],
    ["constructor", 'unknown command "constructor"'],
    ["\u0000\u{1f4a5}", 'unknown command "???"'],
    ["power_off now", "power_off: takes no argument"],
    ["reboot 1 2", "reboot: too many arguments"],
    ["set_tx_power", "set_tx_power: needs a number"],
    ["set_tx_power loud", "set_tx_power: must be a number of dBm from 0 to 30"],
    ["set_tx_power 1e1", "set_tx_power: must be a number of dBm from 0 to 30"],
    ["set_tx_power 31", "set_tx_power: must be a number of dBm from 0 to 30"],
    ["set_tx_power NaN", "set_tx_power: must be a number of dBm from 0 to 30"],
    ["set_channel 14", "set_channel: must be 1 to 13"],
    ["set_channel -1", "set_channel: must be 1 to 13"],
    ["set_channel 1.5", "set_channel: must be 1 to 13"],
  ])("that is invalid is refused with a reason: %j", (command, reason) => {
    const outcome = commandSite(siteOf(oneOfEach()), "WiFi", command, EVENING_MS);
    expect(outcome).toEqual({ refused: expect.stringContaining(reason) });
  });

  it("of 100 KB is refused with a reason", () => {
    const outcome = commandSite(siteOf(oneOfEach()), "WiFi", `set_channel ${"9".repeat(100_000)}`, EVENING_MS);
    expect(outcome).toEqual({ refused: "set_channel: too many arguments" });
  });

  it("for an unknown access point is refused", () => {
    expect(commandSite(siteOf(oneOfEach()), "other", "power_on", 0)).toEqual({ refused: "no such access point" });
  });

  it("never throws and never changes the given state", () => {
    const site = siteOf(oneOfEach());
    const before = structuredClone(site);
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary" }),
          fc.tuple(fc.constantFrom(...COMMANDS), fc.string()).map((p) => p.join(" ")),
        ),
        (command) => {
          const outcome = commandSite(site, "5G", command, 0);
          if ("refused" in outcome) expect(outcome.refused.length).toBeLessThan(200);
          expect(site).toEqual(before);
        },
      ),
    );
  });
});
