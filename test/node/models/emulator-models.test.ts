import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AccessPointSpec, type Sample, TECHNOLOGIES } from "../../../src/emulator/models/access-point.ts";
import { COMMANDS } from "../../../src/emulator/models/commands.ts";
import { dailyShare, localHour } from "../../../src/emulator/models/daily-load.ts";
import { startNoise, stepNoise } from "../../../src/emulator/models/math.ts";
import { createRandom, seedOf } from "../../../src/emulator/models/random.ts";
import { commandSite, createSite, type Site, type SiteStep, stepSite } from "../../../src/emulator/models/site.ts";

const HOUR_MS = 3_600_000;
const MIDNIGHT_MS = Date.UTC(2026, 2, 20);

const threeKinds = (numDevices = 40): AccessPointSpec[] =>
  TECHNOLOGIES.map((technology) => ({ apId: technology, technology, numDevices }));
const siteOf = (accessPoints: AccessPointSpec[], seed = 1): Site => createSite({ longitudeDeg: 0, accessPoints }, seed);

/** Steps from `fromMs` on and keeps everything. */
function run(site: Site, { fromMs = MIDNIGHT_MS, stepMs = 1_000, steps = 60 } = {}): SiteStep[] {
  const taken: SiteStep[] = [];
  for (let step = 0, now = site; step < steps; step += 1) {
    const next = stepSite(now, fromMs + step * stepMs);
    taken.push(next);
    now = next.site;
  }
  return taken;
}

function sampleOf({ samples }: SiteStep, apId: string): Sample {
  const found = samples.find((each) => each.apId === apId);
  if (found === undefined) throw new Error(`no sample of ${apId}`);
  return found.sample;
}
const series = (steps: SiteStep[], apId: string, field: string): number[] =>
  steps.map((step) => sampleOf(step, apId)[field] ?? Number.NaN);
const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const usersOf = ({ samples }: SiteStep): number =>
  samples.reduce((sum, { sample }) => sum + (sample.users ?? Number.NaN), 0);

function correlation(left: number[], right: number[]): number {
  const [meanLeft, meanRight] = [mean(left), mean(right)];
  const away = left.map((value, index) => [value - meanLeft, (right[index] ?? Number.NaN) - meanRight] as const);
  const sum = (of: (pair: readonly [number, number]) => number): number =>
    away.reduce((total, pair) => total + of(pair), 0);
  return sum(([x, y]) => x * y) / Math.sqrt(sum(([x]) => x * x) * sum(([, y]) => y * y));
}

/** Names that differ between the technologies for the same things. */
const NAMES = {
  "5G": { utilisation: "RRU.PrbTotDl", delay: "DRB.AirIfDelayDl", associated: "RRC.ConnMax" },
  WiFi: { utilisation: "channel_utilisation_pct", delay: "latency_ms", associated: "associations" },
  LiFi: { utilisation: "load", delay: "latency_ms", associated: "users" },
} as const;

const COUNTERS = {
  "5G": ["MM.HoExeIntraReq", "MM.HoExeIntraSucc"],
  WiFi: ["tx_bytes", "rx_bytes", "retries"],
  LiFi: ["blockages"],
} as const;

/** Inclusive. Every field of every technology has to be here. */
const RANGES: Record<string, readonly [low: number, high: number]> = {
  load: [0, 1],
  quality: [0, 1],
  users: [0, 100_000],
  powered: [0, 1],
  throughput_mbps: [0, 2_000],
  throughput_ul_mbps: [0, 1_000],
  tx_power_dbm: [0, 49],
  channel: [1, 653_333],
  "RRC.ConnMean": [0, 100_000],
  "RRC.ConnMax": [0, 100_000],
  "DRB.UEThpDl": [0, 1_000_000],
  "DRB.UEThpUl": [0, 1_000_000],
  "RRU.PrbTotDl": [0, 100],
  "RRU.PrbTotUl": [0, 100],
  "DRB.AirIfDelayDl": [0, 1_000],
  "DRB.AirIfDelayUl": [0, 2_000],
  "MM.HoExeIntraReq": [0, Number.MAX_SAFE_INTEGER],
  "MM.HoExeIntraSucc": [0, Number.MAX_SAFE_INTEGER],
  "PEE.AvgPower": [0, 600],
  sinr_db: [-10, 40],
  channel_utilisation_pct: [0, 100],
  noise_dbm: [-100, -70],
  rssi_dbm: [-95, -25],
  snr_db: [0, 80],
  mcs: [0, 11],
  associations: [0, 100_000],
  tx_bytes: [0, Number.MAX_SAFE_INTEGER],
  rx_bytes: [0, Number.MAX_SAFE_INTEGER],
  retries: [0, Number.MAX_SAFE_INTEGER],
  retry_ratio: [0, 1],
  latency_ms: [0, 100],
  optical_rx_power_dbm: [-60, 0],
  ambient_light_lux: [0, 20_000],
  blockage: [0, 1],
  blockages: [0, Number.MAX_SAFE_INTEGER],
  led_temperature_c: [0, 120],
};

describe("chance", () => {
  it("is even, normal and Poisson as it says", () => {
    const random = createRandom(seedOf(7));
    const draws = Array.from({ length: 20_000 }, () => random.uniform());
    expect(mean(draws)).toBeCloseTo(0.5, 1);
    const normal = Array.from({ length: 20_000 }, () => random.normal());
    expect(mean(normal)).toBeCloseTo(0, 1);
    expect(mean(normal.map((value) => value * value))).toBeCloseTo(1, 1);
    for (const expected of [0, 0.3, 5, 200])
      expect(mean(Array.from({ length: 5_000 }, () => random.poisson(expected))) / (expected || 1)).toBeCloseTo(
        expected === 0 ? 0 : 1,
        1,
      );
  });

  it("differs for neighbouring seeds and moments", () => {
    const firsts = Array.from({ length: 1_000 }, (_, index) =>
      createRandom(seedOf(1, MIDNIGHT_MS + index * 1_000)).uniform(),
    );
    expect(new Set(firsts).size).toBe(1_000);
    expect(Math.abs(correlation(firsts.slice(1), firsts.slice(0, -1)))).toBeLessThan(0.1);
  });

  it("with memory keeps its spread whatever the length of the steps, and forgets slowly", () => {
    const noise = { deviation: 2, memoryS: 60 };
    for (const elapsedS of [1, 30, 600]) {
      const random = createRandom(seedOf(3, elapsedS));
      const values = [startNoise(noise, random)];
      for (let step = 0; step < 40_000; step += 1) values.push(stepNoise(values.at(-1) ?? 0, noise, elapsedS, random));
      expect(Math.sqrt(mean(values.map((value) => value * value)))).toBeCloseTo(2, 0);
      expect(correlation(values.slice(1), values.slice(0, -1))).toBeCloseTo(Math.exp(-elapsedS / 60), 1);
    }
  });
});

describe("a day", () => {
  it("follows the sun", () => {
    expect(localHour(MIDNIGHT_MS, 0)).toBe(0);
    expect(localHour(MIDNIGHT_MS + 6 * HOUR_MS, 90)).toBe(12);
    expect(localHour(MIDNIGHT_MS, -75)).toBe(19);
    expect(localHour(-HOUR_MS, 0)).toBe(23);
  });

  it.each(TECHNOLOGIES)("of %s has no jumps, not even at midnight", (technology) => {
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      const [now, next] = [minute, (minute + 1) % (24 * 60)].map((at) => dailyShare(technology, at / 60));
      expect(now).toBeGreaterThan(0);
      expect(now).toBeLessThan(1);
      expect(Math.abs((now ?? 0) - (next ?? 1))).toBeLessThan(0.01);
    }
  });

  const day = run(siteOf(threeKinds()), { stepMs: 60_000, steps: 24 * 60 });
  const hours = (from: number, to: number): SiteStep[] => day.slice(from * 60, to * 60);

  it.each(TECHNOLOGIES)("%s: load brings users, utilisation, throughput and delay along", (technology) => {
    const { utilisation, delay, associated } = NAMES[technology];
    // While a link is blocked there is no delay to speak of.
    const linked = day.filter((step) => sampleOf(step, technology).blockage !== 1);
    const of = (field: string): number[] => series(linked, technology, field);
    expect(correlation(of("load"), of("users"))).toBeGreaterThan(0.7);
    expect(correlation(of("users"), of(utilisation))).toBeGreaterThan(0.7);
    expect(correlation(of(utilisation), of("throughput_mbps"))).toBeGreaterThan(0.7);
    expect(correlation(of(utilisation), of(delay))).toBeGreaterThan(0.6);
    expect(correlation(of("load"), of("quality"))).toBeLessThan(-0.1);
    expect(of(associated).every((value, index) => value >= (of("users")[index] ?? 0))).toBe(true);
  });

  it.each(TECHNOLOGIES)("%s: is busy in the evening and quiet at night", (technology) => {
    for (const field of ["load", "users", "throughput_mbps"])
      expect(mean(series(hours(18, 21), technology, field))).toBeGreaterThan(
        2.5 * mean(series(hours(2, 5), technology, field)),
      );
  });

  it("power follows load, retries follow a full channel, and the sun shines at noon", () => {
    expect(correlation(series(day, "5G", "PEE.AvgPower"), series(day, "5G", "load"))).toBeGreaterThan(0.9);
    expect(correlation(series(day, "WiFi", "retry_ratio"), series(day, "WiFi", "load"))).toBeGreaterThan(0.4);
    expect(mean(series(hours(11, 13), "LiFi", "ambient_light_lux"))).toBeGreaterThan(
      3 * mean(series(hours(1, 4), "LiFi", "ambient_light_lux")),
    );
  });

  it("access points of one place are alike, and not the same", () => {
    const twins = run(siteOf(["a", "b"].map((apId) => ({ apId, technology: "WiFi", numDevices: 50 }))), {
      stepMs: 60_000,
      steps: 24 * 60,
    });
    const alike = correlation(series(twins, "a", "load"), series(twins, "b", "load"));
    expect(alike).toBeGreaterThan(0.5);
    expect(alike).toBeLessThan(0.99);
  });
});

describe("every sample", () => {
  it("is whole and in range, whatever the seed, hour, size, pace and command", () => {
    fc.assert(
      fc.property(
        fc.record({
          seed: fc.integer(),
          hour: fc.double({ min: 0, max: 24, noNaN: true }),
          longitudeDeg: fc.double({ min: -180, max: 180, noNaN: true }),
          numDevices: fc.oneof(fc.integer({ min: 1, max: 200 }), fc.constant(50_000)),
          stepMs: fc.constantFrom(0, 1_000, 60_000, HOUR_MS),
          command: fc.constantFrom("", "power_off", "reboot", "set_tx_power 0", "set_tx_power 30", "set_channel 5"),
        }),
        ({ seed, hour, longitudeDeg, numDevices, stepMs, command }) => {
          const fromMs = MIDNIGHT_MS + Math.round(hour * HOUR_MS);
          let site = createSite({ longitudeDeg, accessPoints: threeKinds(numDevices) }, seed);
          for (const apId of TECHNOLOGIES) {
            const outcome = commandSite(site, apId, command, fromMs);
            if ("site" in outcome) site = outcome.site;
          }
          for (const step of run(site, { fromMs, stepMs, steps: 12 })) {
            expect(usersOf(step)).toBeLessThanOrEqual(step.devicesPresent);
            // One expectation for all: each of them takes longer than a step does.
            const astray = step.samples.flatMap(({ sample }) =>
              Object.entries(sample).filter(([field, value]) => {
                const [low, high] = RANGES[field] ?? [Number.NaN, Number.NaN];
                return !(value >= low && value <= high);
              }),
            );
            expect(astray).toEqual([]);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it.each(TECHNOLOGIES)("of %s has the same fields always, and the three neutral ones", (technology) => {
    let site = siteOf(threeKinds());
    const fields = Object.keys(sampleOf(stepSite(site, MIDNIGHT_MS), technology));
    expect(fields).toEqual(expect.arrayContaining(["load", "quality", "users"]));
    const outcome = commandSite(site, technology, "power_off", MIDNIGHT_MS);
    if ("site" in outcome) site = outcome.site;
    expect(Object.keys(sampleOf(stepSite(site, MIDNIGHT_MS), technology))).toEqual(fields);
  });

  it("comes again from the same seed, and from a state that was kept as JSON", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 0, max: 24 }), (seed, hour) => {
        const at = { fromMs: MIDNIGHT_MS + hour * HOUR_MS, steps: 20 };
        const once = run(siteOf(threeKinds(), seed), at);
        expect(run(siteOf(threeKinds(), seed), at)).toEqual(once);
        expect(run(siteOf(threeKinds(), seed + 1), at)).not.toEqual(once);
        const kept = JSON.parse(JSON.stringify(once[9]?.site)) as Site;
        expect(run(kept, { fromMs: at.fromMs + 10_000, steps: 10 })).toEqual(once.slice(10));
      }),
      { numRuns: 20 },
    );
  });

  it("counts up and never down, through restarts and clocks that go back", () => {
    let site = siteOf(threeKinds());
    const last: Record<string, number> = {};
    for (let step = 0; step < 3_000; step += 1) {
      const nowMs = MIDNIGHT_MS + 18 * HOUR_MS + step * 1_000 - (step % 97 === 0 ? 30_000 : 0);
      if (step % 500 === 250)
        for (const apId of TECHNOLOGIES) {
          const outcome = commandSite(site, apId, "reboot", nowMs);
          if ("site" in outcome) site = outcome.site;
        }
      const next = stepSite(site, nowMs);
      site = next.site;
      for (const technology of TECHNOLOGIES)
        for (const counter of COUNTERS[technology]) {
          const value = sampleOf(next, technology)[counter] ?? Number.NaN;
          expect(value, counter).toBeGreaterThanOrEqual(last[counter] ?? 0);
          last[counter] = value;
        }
    }
    expect(Object.values(last).every((value) => value > 0)).toBe(true);
    expect(last["MM.HoExeIntraSucc"]).toBeLessThanOrEqual(last["MM.HoExeIntraReq"] ?? 0);
  });
});

describe("somebody in the light", () => {
  const steps = run(siteOf(threeKinds(), 5), { fromMs: MIDNIGHT_MS + 14 * HOUR_MS, stepMs: 500, steps: 4 * 7_200 });
  const blocked = steps.filter((step) => sampleOf(step, "LiFi").blockage === 1);

  it("blocks a link for 1 to 5 s, now and then", () => {
    const lengthsS: number[] = [];
    let since: number | undefined;
    for (const [index, step] of steps.entries()) {
      const now = sampleOf(step, "LiFi").blockage === 1;
      if (now) since ??= index;
      else if (since !== undefined) {
        lengthsS.push((index - since) / 2);
        since = undefined;
      }
    }
    expect(lengthsS.length).toBeGreaterThan(40);
    expect(Math.min(...lengthsS)).toBeGreaterThanOrEqual(1);
    // Two that follow each other at once look like one.
    expect(lengthsS.filter((length) => length > 5.5).length).toBeLessThan(lengthsS.length / 20);
    expect(blocked.length / steps.length).toBeLessThan(0.05);
  });

  it("takes everything from the link", () => {
    for (const step of blocked)
      expect(sampleOf(step, "LiFi")).toMatchObject({ load: 0, quality: 0, users: 0, throughput_mbps: 0, snr_db: 0 });
  });

  it("sends its devices to the others at the place, and back afterwards: none is lost", () => {
    for (const step of steps) expect(usersOf(step)).toBe(step.devicesPresent);
    const [start] = blocked;
    const index = start === undefined ? -1 : steps.indexOf(start);
    const before = steps[index - 1];
    const during = steps[index];
    if (before === undefined || during === undefined) throw new Error("no blockage");
    const away = sampleOf(before, "LiFi").users ?? 0;
    expect(away).toBeGreaterThan(10);
    for (const apId of ["5G", "WiFi"])
      expect((sampleOf(during, apId).users ?? 0) - (sampleOf(before, apId).users ?? 0)).toBeGreaterThanOrEqual(
        Math.floor(away / 2) - 2,
      );
  });

  it("leaves them waiting where there is nothing else", () => {
    const alone = run(siteOf([{ apId: "LiFi", technology: "LiFi", numDevices: 40 }], 5), {
      fromMs: MIDNIGHT_MS + 14 * HOUR_MS,
      steps: 3_600,
    });
    for (const step of alone)
      expect(usersOf(step)).toBe(sampleOf(step, "LiFi").blockage === 1 ? 0 : step.devicesPresent);
  });
});

describe("a command", () => {
  const EVENING_MS = MIDNIGHT_MS + 19 * HOUR_MS;
  const told = (site: Site, apId: string, command: string, nowMs = EVENING_MS): Site => {
    const outcome = commandSite(site, apId, command, nowMs);
    if ("refused" in outcome) throw new Error(outcome.refused);
    return outcome.site;
  };
  const averages = (site: Site, apId: string, field: string): number =>
    mean(series(run(site, { fromMs: EVENING_MS, steps: 200 }), apId, field));

  it.each(TECHNOLOGIES)("switches %s off and on", (technology) => {
    const off = told(siteOf(threeKinds()), technology, "power_off");
    const dark = stepSite(off, EVENING_MS);
    expect(sampleOf(dark, technology)).toMatchObject({ load: 0, users: 0, quality: 0, throughput_mbps: 0, powered: 0 });
    expect(sampleOf(dark, technology)[NAMES[technology].utilisation]).toBe(0);
    expect(usersOf(dark)).toBe(dark.devicesPresent);
    const on = stepSite(told(dark.site, technology, "power_on"), EVENING_MS + 1_000);
    expect(sampleOf(on, technology).users).toBeGreaterThan(10);
    expect(sampleOf(on, technology).load).toBeGreaterThan(0.1);
  });

  it.each(TECHNOLOGIES)("restarts %s: off for some seconds, then back", (technology) => {
    const steps = run(told(siteOf(threeKinds()), technology, "reboot"), { fromMs: EVENING_MS, steps: 20 });
    expect(series(steps, technology, "powered").join("")).toMatch(/^0{5,10}1{10,15}$/);
    expect(series(steps, technology, "load").slice(0, 5)).toEqual([0, 0, 0, 0, 0]);
  });

  it.each(TECHNOLOGIES)("lowers the power of %s: the link gets worse and fuller", (technology) => {
    const [usual, low] = [siteOf(threeKinds()), told(siteOf(threeKinds()), technology, "set_tx_power 12.5")];
    expect(averages(low, technology, "tx_power_dbm")).toBe(12.5);
    expect(averages(low, technology, "quality")).toBeLessThan(averages(usual, technology, "quality") - 0.1);
    expect(averages(low, technology, "load")).toBeGreaterThan(averages(usual, technology, "load"));
  });

  it.each([
    ["5G", 640_000],
    ["WiFi", 11],
    ["LiFi", 3],
  ] as const)("moves %s to channel %i, with what else is there", (technology, channel) => {
    const [usual, moved] = [siteOf(threeKinds()), told(siteOf(threeKinds()), technology, `set_channel ${channel}`)];
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
  ])("that makes no sense is refused by name: %j", (command, reason) => {
    const outcome = commandSite(siteOf(threeKinds()), "WiFi", command, EVENING_MS);
    expect(outcome).toEqual({ refused: expect.stringContaining(reason) });
  });

  it("of 100 KB is refused by name", () => {
    const outcome = commandSite(siteOf(threeKinds()), "WiFi", `set_channel ${"9".repeat(100_000)}`, EVENING_MS);
    expect(outcome).toEqual({ refused: "set_channel: too many arguments" });
  });

  it("for an access point that is not there is refused", () => {
    expect(commandSite(siteOf(threeKinds()), "other", "power_on", 0)).toEqual({ refused: "no such access point" });
  });

  it("never throws, and never changes the state it was given", () => {
    const site = siteOf(threeKinds());
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
