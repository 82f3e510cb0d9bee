import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TECHNOLOGIES } from "../../../src/emulator/models/access-point.ts";
import { dailyShare, localHour } from "../../../src/emulator/models/daily-load.ts";
import { startNoise, stepNoise } from "../../../src/emulator/models/math.ts";
import { createRandom, seedOf } from "../../../src/emulator/models/random.ts";
import { commandSite, createSite, type Site, type SiteStep, stepSite } from "../../../src/emulator/models/site.ts";
import {
  correlation,
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

const COUNTERS = {
  "5G": ["MM.HoExeIntraReq", "MM.HoExeIntraSucc"],
  WiFi: ["tx_bytes", "rx_bytes", "retries"],
  LiFi: ["blockages"],
} as const;

/** Inclusive ranges of all fields of all technologies. */
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

describe("random numbers", () => {
  it("have the right distributions", () => {
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

  it("differ for neighbouring seeds and times", () => {
    const firsts = Array.from({ length: 1_000 }, (_, index) =>
      createRandom(seedOf(1, MIDNIGHT_MS + index * 1_000)).uniform(),
    );
    expect(new Set(firsts).size).toBe(1_000);
    expect(Math.abs(correlation(firsts.slice(1), firsts.slice(0, -1)))).toBeLessThan(0.1);
  });

  it("with memory keep their deviation for any length of steps", () => {
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

describe("the load during a day", () => {
  it("depends on the solar time", () => {
    expect(localHour(MIDNIGHT_MS, 0)).toBe(0);
    expect(localHour(MIDNIGHT_MS + 6 * HOUR_MS, 90)).toBe(12);
    expect(localHour(MIDNIGHT_MS, -75)).toBe(19);
    expect(localHour(-HOUR_MS, 0)).toBe(23);
  });

  it.each(TECHNOLOGIES)("of %s changes smoothly, also at midnight", (technology) => {
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      const [now, next] = [minute, (minute + 1) % (24 * 60)].map((at) => dailyShare(technology, at / 60));
      expect(now).toBeGreaterThan(0);
      expect(now).toBeLessThan(1);
      expect(Math.abs((now ?? 0) - (next ?? 1))).toBeLessThan(0.01);
    }
  });

  const day = run(siteOf(oneOfEach()), { stepMs: 60_000, steps: 24 * 60 });
  const hours = (from: number, to: number): SiteStep[] => day.slice(from * 60, to * 60);

  it.each(TECHNOLOGIES)("of %s correlates with users, utilisation, throughput and delay", (technology) => {
    const { utilisation, delay, associated } = NAMES[technology];
    // A blocked link has no delay.
    const linked = day.filter((step) => sampleOf(step, technology).blockage !== 1);
    const of = (field: string): number[] => series(linked, technology, field);
    expect(correlation(of("load"), of("users"))).toBeGreaterThan(0.7);
    expect(correlation(of("users"), of(utilisation))).toBeGreaterThan(0.7);
    expect(correlation(of(utilisation), of("throughput_mbps"))).toBeGreaterThan(0.7);
    expect(correlation(of(utilisation), of(delay))).toBeGreaterThan(0.6);
    expect(correlation(of("load"), of("quality"))).toBeLessThan(-0.1);
    expect(of(associated).every((value, index) => value >= (of("users")[index] ?? 0))).toBe(true);
  });

  it.each(TECHNOLOGIES)("of %s is high in the evening and low at night", (technology) => {
    for (const field of ["load", "users", "throughput_mbps"])
      expect(mean(series(hours(18, 21), technology, field))).toBeGreaterThan(
        2.5 * mean(series(hours(2, 5), technology, field)),
      );
  });

  it("increases power and retries, and ambient light is highest at noon", () => {
    expect(correlation(series(day, "5G", "PEE.AvgPower"), series(day, "5G", "load"))).toBeGreaterThan(0.9);
    expect(correlation(series(day, "WiFi", "retry_ratio"), series(day, "WiFi", "load"))).toBeGreaterThan(0.4);
    expect(mean(series(hours(11, 13), "LiFi", "ambient_light_lux"))).toBeGreaterThan(
      3 * mean(series(hours(1, 4), "LiFi", "ambient_light_lux")),
    );
  });

  it("is similar, but not equal, for access points of one site", () => {
    const twins = run(siteOf(["a", "b"].map((apId) => ({ apId, technology: "WiFi", numDevices: 50 }))), {
      stepMs: 60_000,
      steps: 24 * 60,
    });
    const similarity = correlation(series(twins, "a", "load"), series(twins, "b", "load"));
    expect(similarity).toBeGreaterThan(0.5);
    expect(similarity).toBeLessThan(0.99);
  });
});

describe("every sample", () => {
  it("has all values in range, for any seed, hour, size, step and command", () => {
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
          let site = createSite({ longitudeDeg, accessPoints: oneOfEach(numDevices) }, seed);
          for (const apId of TECHNOLOGIES) {
            const outcome = commandSite(site, apId, command, fromMs);
            if ("site" in outcome) site = outcome.site;
          }
          for (const step of run(site, { fromMs, stepMs, steps: 12 })) {
            expect(usersOf(step)).toBeLessThanOrEqual(step.devicesPresent);
            // A single expectation for all values, because an expectation takes longer than a step.
            const outOfRange = step.samples.flatMap(({ sample }) =>
              Object.entries(sample).filter(([field, value]) => {
                const [low, high] = RANGES[field] ?? [Number.NaN, Number.NaN];
                return !(value >= low && value <= high);
              }),
            );
            expect(outOfRange).toEqual([]);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it.each(TECHNOLOGIES)("of %s always has the same fields, including the three common ones", (technology) => {
    let site = siteOf(oneOfEach());
    const fields = Object.keys(sampleOf(stepSite(site, MIDNIGHT_MS), technology));
    expect(fields).toEqual(expect.arrayContaining(["load", "quality", "users"]));
    const outcome = commandSite(site, technology, "power_off", MIDNIGHT_MS);
    if ("site" in outcome) site = outcome.site;
    expect(Object.keys(sampleOf(stepSite(site, MIDNIGHT_MS), technology))).toEqual(fields);
  });

  it("is reproducible from the same seed and from a state stored as JSON", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 0, max: 24 }), (seed, hour) => {
        const at = { fromMs: MIDNIGHT_MS + hour * HOUR_MS, steps: 20 };
        const once = run(siteOf(oneOfEach(), seed), at);
        expect(run(siteOf(oneOfEach(), seed), at)).toEqual(once);
        expect(run(siteOf(oneOfEach(), seed + 1), at)).not.toEqual(once);
        const stored = JSON.parse(JSON.stringify(once[9]?.site)) as Site;
        expect(run(stored, { fromMs: at.fromMs + 10_000, steps: 10 })).toEqual(once.slice(10));
      }),
      { numRuns: 20 },
    );
  });

  it("has counters that never decrease, also after restarts and if the clock goes back", () => {
    let site = siteOf(oneOfEach());
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

describe("a blockage of the light", () => {
  const steps = run(siteOf(oneOfEach(), 5), { fromMs: MIDNIGHT_MS + 14 * HOUR_MS, stepMs: 500, steps: 4 * 7_200 });
  const blocked = steps.filter((step) => sampleOf(step, "LiFi").blockage === 1);

  it("lasts 1 to 5 s and is rare", () => {
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
    // Two consecutive blockages look like one.
    expect(lengthsS.filter((length) => length > 5.5).length).toBeLessThan(lengthsS.length / 20);
    expect(blocked.length / steps.length).toBeLessThan(0.05);
  });

  it("interrupts the link completely", () => {
    for (const step of blocked)
      expect(sampleOf(step, "LiFi")).toMatchObject({ load: 0, quality: 0, users: 0, throughput_mbps: 0, snr_db: 0 });
  });

  it("moves the devices to other access points of the site, and loses none", () => {
    for (const step of steps) expect(usersOf(step)).toBe(step.devicesPresent);
    const [start] = blocked;
    const index = start === undefined ? -1 : steps.indexOf(start);
    const before = steps[index - 1];
    const during = steps[index];
    if (before === undefined || during === undefined) throw new Error("no blockage");
    const moved = sampleOf(before, "LiFi").users ?? 0;
    expect(moved).toBeGreaterThan(10);
    for (const apId of ["5G", "WiFi"])
      expect((sampleOf(during, apId).users ?? 0) - (sampleOf(before, apId).users ?? 0)).toBeGreaterThanOrEqual(
        Math.floor(moved / 2) - 2,
      );
  });

  it("leaves the devices unconnected if the site has no other access point", () => {
    const alone = run(siteOf([{ apId: "LiFi", technology: "LiFi", numDevices: 40 }], 5), {
      fromMs: MIDNIGHT_MS + 14 * HOUR_MS,
      steps: 3_600,
    });
    for (const step of alone)
      expect(usersOf(step)).toBe(sampleOf(step, "LiFi").blockage === 1 ? 0 : step.devicesPresent);
  });
});
