import type { Random } from "./random.ts";

export const TECHNOLOGIES = ["5G", "WiFi", "LiFi"] as const;
export type Technology = (typeof TECHNOLOGIES)[number];

export interface AccessPointSpec {
  apId: string;
  technology: Technology;
  /** Devices that belong to this access point. The number of present ones depends on the hour. */
  numDevices: number;
}

/** Settings that commands change. */
export interface Controls {
  powered: boolean;
  /** The access point restarts, and is off until this time. */
  restartUntilMs: number;
  txPowerDbm: number;
  channel: number;
}

/** The demand on an access point during one step. */
export interface Demand {
  users: number;
  /** Downlink demand of all users together. */
  demandMbps: number;
}

/** The input of a radio model for one step. */
export interface Moment extends Demand {
  nowMs: number;
  elapsedS: number;
  hour: number;
  /** Whether the access point is neither switched off nor restarting. */
  on: boolean;
  txPowerDbm: number;
  channel: number;
  /** Interference on this channel at this site, from 0 (none) to 1. */
  interference: number;
  random: Random;
}

/** The payload of a report: field name → value. */
export type Sample = Record<string, number>;

/** Settings and capacity of a radio of one technology. */
export interface RadioLimits {
  txPowerDbm: { low: number; high: number; usual: number };
  /** Describes the valid channels, for error messages. */
  channels: string;
  isChannel(channel: number): boolean;
  firstChannel(random: Random): number;
  /** Capacity of the radio in the middle of its cell. */
  nominalMbps: number;
  /** Maximum demand of one device. */
  deviceMbpsMax: number;
}

/** The model of a radio. States are plain data. */
export interface RadioModel<State> extends RadioLimits {
  start(random: Random): State;
  step(state: State, moment: Moment): { state: State; sample: Sample };
}

/** Share of the capacity that all devices of an access point together demand at peak time. */
const PEAK_LOAD = 0.85;

export const mbpsPerDevice = (limits: RadioLimits, numDevices: number): number =>
  Math.min(limits.deviceMbpsMax, (PEAK_LOAD * limits.nominalMbps) / numDevices);
