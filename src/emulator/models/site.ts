import type { AccessPointSpec, Controls, Demand, Moment, RadioLimits, Sample, Technology } from "./access-point.ts";
import { mbpsPerDevice } from "./access-point.ts";
import { applyCommand } from "./commands.ts";
import { dailyShare, localHour } from "./daily-load.ts";
import { type FiveGState, fiveG } from "./five-g.ts";
import { isBlocked, type LifiState, lifi, stepBlockage } from "./lifi.ts";
import { asFactor, clamp, type Noise, startNoise, stepNoise } from "./math.ts";
import { createRandom, type Random, seedOf } from "./random.ts";
import { type WifiState, wifi } from "./wifi.ts";

/**
 * A site and its access points. They step together, because devices move between them. States are immutable plain data that can be stored
 * as JSON. Random numbers depend only on the seed and the time of the step, so that a stored state is enough to continue.
 */

export interface SiteSpec {
  longitudeDeg: number;
  accessPoints: readonly AccessPointSpec[];
}

type Radio =
  | { technology: "5G"; state: FiveGState }
  | { technology: "WiFi"; state: WifiState }
  | { technology: "LiFi"; state: LifiState };

interface AccessPoint {
  apId: string;
  numDevices: number;
  controls: Controls;
  /** Devices of this access point that are at the site, whichever access point they are connected to. */
  present: number;
  presenceNoise: number;
  demandNoise: number;
  radio: Radio;
}

export interface Site {
  seed: number;
  longitudeDeg: number;
  /** Time of the latest step; undefined before the first one. */
  steppedAtMs: number | undefined;
  placeNoise: number;
  accessPoints: readonly AccessPoint[];
}

export interface SiteStep {
  site: Site;
  /** One per access point, in the order of the specification. */
  samples: { apId: string; sample: Sample }[];
  /** Devices at the site, including those that no access point can carry. */
  devicesPresent: number;
}

const PLACE_NOISE: Noise = { deviation: 0.08, memoryS: 2_400 };
const PRESENCE_NOISE: Noise = { deviation: 0.12, memoryS: 900 };
const DEMAND_NOISE: Noise = { deviation: 0.2, memoryS: 25 };
/** Minimum change of the wanted number of devices. Without it, rounding would make a device arrive and leave all the time. */
const HYSTERESIS = 0.7;
/** Number of neighbours that share the devices of an unreachable access point. */
const NEIGHBOURS = 3;

const limitsOf = (technology: Technology): RadioLimits => ({ "5G": fiveG, WiFi: wifi, LiFi: lifi })[technology];

/** Parts of the seed that give each use of random numbers a sequence of its own. */
const STREAM = { start: 1, place: 2, presence: 3, radio: 4, channel: 5 };

export function createSite({ longitudeDeg, accessPoints }: SiteSpec, seed: number): Site {
  return {
    seed,
    longitudeDeg,
    steppedAtMs: undefined,
    placeNoise: startNoise(PLACE_NOISE, createRandom(seedOf(seed, STREAM.place))),
    accessPoints: accessPoints.map(({ apId, technology, numDevices }, index) => {
      const random = createRandom(seedOf(seed, STREAM.start, index));
      const limits = limitsOf(technology);
      return {
        apId,
        numDevices,
        controls: {
          powered: true,
          restartUntilMs: 0,
          txPowerDbm: limits.txPowerDbm.usual,
          channel: limits.firstChannel(random),
        },
        present: 0,
        presenceNoise: startNoise(PRESENCE_NOISE, random),
        demandNoise: startNoise(DEMAND_NOISE, random),
        radio: startRadio(technology, random),
      };
    }),
  };
}

function startRadio(technology: Technology, random: Random): Radio {
  switch (technology) {
    case "5G":
      return { technology, state: fiveG.start(random) };
    case "WiFi":
      return { technology, state: wifi.start(random) };
    case "LiFi":
      return { technology, state: lifi.start(random) };
  }
}

/** Advances the site to `nowMs`. If the clock went back, no time has elapsed. */
export function stepSite(site: Site, nowMs: number): SiteStep {
  const isFirst = site.steppedAtMs === undefined;
  const elapsedS = Math.max(0, nowMs - (site.steppedAtMs ?? nowMs)) / 1_000;
  const hour = localHour(nowMs, site.longitudeDeg);
  const placeRandom = createRandom(seedOf(site.seed, STREAM.place, nowMs));
  const placeNoise = stepNoise(site.placeNoise, PLACE_NOISE, elapsedS, placeRandom);
  const populated = site.accessPoints.map((accessPoint, index) =>
    stepPresence(accessPoint, {
      isFirst,
      nowMs,
      elapsedS,
      placeNoise,
      hour,
      random: createRandom(seedOf(site.seed, STREAM.presence, index, nowMs)),
    }),
  );
  const demands = assignDemand(populated, nowMs);
  const samples: SiteStep["samples"] = [];
  const accessPoints = populated.map((accessPoint, index): AccessPoint => {
    const { controls, radio } = accessPoint;
    const { users, demandMbps } = demands[index] ?? { users: 0, demandMbps: 0 };
    const moment = {
      nowMs,
      elapsedS,
      hour,
      users,
      demandMbps,
      on: isOn(controls, nowMs),
      txPowerDbm: controls.txPowerDbm,
      channel: controls.channel,
      interference: createRandom(seedOf(site.seed, STREAM.channel, index, controls.channel)).uniform(),
      random: createRandom(seedOf(site.seed, STREAM.radio, index, nowMs)),
    };
    const stepped = stepRadio(radio, moment);
    samples.push({ apId: accessPoint.apId, sample: stepped.sample });
    return { ...accessPoint, radio: stepped.radio };
  });
  return {
    site: { ...site, steppedAtMs: nowMs, placeNoise, accessPoints },
    samples,
    devicesPresent: populated.reduce((sum, { present }) => sum + present, 0),
  };
}

function stepRadio(radio: Radio, moment: Moment): { radio: Radio; sample: Sample } {
  switch (radio.technology) {
    case "5G": {
      const { state, sample } = fiveG.step(radio.state, moment);
      return { radio: { technology: radio.technology, state }, sample };
    }
    case "WiFi": {
      const { state, sample } = wifi.step(radio.state, moment);
      return { radio: { technology: radio.technology, state }, sample };
    }
    case "LiFi": {
      const { state, sample } = lifi.step(radio.state, moment);
      return { radio: { technology: radio.technology, state }, sample };
    }
  }
}

/** Advances the number of present devices and, for LiFi, the blockage of the beam. */
function stepPresence(
  accessPoint: AccessPoint,
  moment: {
    isFirst: boolean;
    nowMs: number;
    elapsedS: number;
    placeNoise: number;
    hour: number;
    random: Random;
  },
): AccessPoint {
  const { numDevices, radio } = accessPoint;
  const { elapsedS, random } = moment;
  const presenceNoise = stepNoise(accessPoint.presenceNoise, PRESENCE_NOISE, elapsedS, random);
  const demandNoise = stepNoise(accessPoint.demandNoise, DEMAND_NOISE, elapsedS, random);
  const share = dailyShare(radio.technology, moment.hour) * asFactor(presenceNoise + moment.placeNoise);
  const wanted = numDevices * clamp(share, 0, 1);
  const stays = !moment.isFirst && Math.abs(wanted - accessPoint.present) < HYSTERESIS;
  const present = stays ? accessPoint.present : Math.round(wanted);
  const stepped = { ...accessPoint, present, presenceNoise, demandNoise };
  if (radio.technology !== "LiFi") return stepped;
  const presence = present / numDevices;
  return { ...stepped, radio: { ...radio, state: stepBlockage(radio.state, { ...moment, presence }) } };
}

const isOn = ({ powered, restartUntilMs }: Controls, nowMs: number): boolean => powered && nowMs >= restartUntilMs;

function isReachable({ controls, radio }: AccessPoint, nowMs: number): boolean {
  return isOn(controls, nowMs) && !(radio.technology === "LiFi" && isBlocked(radio.state, nowMs));
}

/**
 * Returns the demand on each access point. Devices stay with their own access point while it is reachable. Otherwise they and their
 * demand move to the next access points that need no line of sight. If there is none, they stay unconnected.
 */
function assignDemand(accessPoints: readonly AccessPoint[], nowMs: number): Demand[] {
  const demands = accessPoints.map((): Demand => ({ users: 0, demandMbps: 0 }));
  const hosts = accessPoints.flatMap((accessPoint, index) =>
    accessPoint.radio.technology !== "LiFi" && isReachable(accessPoint, nowMs) ? [index] : [],
  );
  const add = (index: number | undefined, devices: number, mbpsEach: number): void => {
    const demand = index === undefined ? undefined : demands[index];
    if (demand === undefined) return;
    demand.users += devices;
    demand.demandMbps += devices * mbpsEach;
  };
  for (const [index, accessPoint] of accessPoints.entries()) {
    const { numDevices, present, demandNoise, radio } = accessPoint;
    const mbpsEach = mbpsPerDevice(limitsOf(radio.technology), numDevices) * asFactor(demandNoise);
    if (isReachable(accessPoint, nowMs)) {
      add(index, present, mbpsEach);
      continue;
    }
    const neighbours = Math.min(NEIGHBOURS, hosts.length);
    for (let i = 0; i < neighbours; i += 1) {
      const share = Math.floor((present + i) / neighbours);
      add(hosts[(index + i) % hosts.length], share, mbpsEach);
    }
  }
  return demands;
}

export type SiteCommandOutcome = { site: Site; detail: string } | { refused: string };

/** Applies a command to one access point. It takes effect in the next step. */
export function commandSite(site: Site, apId: string, command: string, nowMs: number): SiteCommandOutcome {
  const target = site.accessPoints.find((accessPoint) => accessPoint.apId === apId);
  if (target === undefined) return { refused: "no such access point" };
  const outcome = applyCommand(target.controls, command, nowMs, limitsOf(target.radio.technology));
  if ("refused" in outcome) return outcome;
  const changed = { ...target, controls: outcome.controls };
  const accessPoints = site.accessPoints.map((accessPoint) => (accessPoint === target ? changed : accessPoint));
  return { site: { ...site, accessPoints }, detail: outcome.detail };
}
