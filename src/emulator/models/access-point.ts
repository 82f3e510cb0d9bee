import type { Random } from "./random.ts";

export const TECHNOLOGIES = ["5G", "WiFi", "LiFi"] as const;
export type Technology = (typeof TECHNOLOGIES)[number];

export interface AccessPointSpec {
  apId: string;
  technology: Technology;
  /** Devices that call this access point theirs; how many of them are there depends on the hour. */
  numDevices: number;
}

/** What a command can change. */
export interface Controls {
  powered: boolean;
  /** Off until then, because it restarts. */
  restartUntilMs: number;
  txPowerDbm: number;
  channel: number;
}

/** What an access point has to carry for the next moment. */
export interface Demand {
  users: number;
  /** All of them together, downlink. */
  demandMbps: number;
}

export interface Moment extends Demand {
  nowMs: number;
  elapsedS: number;
  hour: number;
  /** Neither switched off nor restarting. */
  on: boolean;
  txPowerDbm: number;
  channel: number;
  /** What else is on this channel here: from 0 (nothing) up to 1. */
  interference: number;
  random: Random;
}

/** Field name → value, ready to be sent as a payload. */
export type Sample = Record<string, number>;

/** What a radio of one technology can be set to, and do. */
export interface RadioLimits {
  txPowerDbm: { low: number; high: number; usual: number };
  /** In words, for who asks for another one. */
  channels: string;
  isChannel(channel: number): boolean;
  firstChannel(random: Random): number;
  /** What the radio can do in the middle of its cell, and what one device takes of it at the most. */
  nominalMbps: number;
  deviceMbpsMax: number;
}

/** And how it goes from one moment to the next. States are plain data. */
export interface RadioModel<State> extends RadioLimits {
  start(random: Random): State;
  step(state: State, moment: Moment): { state: State; sample: Sample };
}

/** Of its capacity, what all devices of an access point together ask for at their busiest. */
const FULL_HOUSE_LOAD = 0.85;

export const mbpsPerDevice = (limits: RadioLimits, numDevices: number): number =>
  Math.min(limits.deviceMbpsMax, (FULL_HOUSE_LOAD * limits.nominalMbps) / numDevices);
