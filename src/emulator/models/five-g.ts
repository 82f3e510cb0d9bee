import type { RadioModel } from "./access-point.ts";
import { clamp, fromDecibels, type Noise, queueingFactor, round, saturate, startNoise, stepNoise } from "./math.ts";

/** A small cell of 100 MHz in band n78, with the measurements of 3GPP TS 28.552. Counters never decrease. */

export interface FiveGState {
  fadingDb: number;
  users: number;
  handoversTried: number;
  handoversDone: number;
}

const FADING: Noise = { deviation: 2.5, memoryS: 30 };
const BANDWIDTH_MHZ = 100;
const DOWNLINK_SHARE = 0.75;
const LAYERS_DL = 2;
/** Relative to Shannon's limit. 256-QAM reaches at most 7.4 bit/s/Hz. */
const EFFICIENCY = 0.65;
const BITS_PER_HZ_MAX = 7.4;
const SINR_MIN_DB = -6;
const SINR_MAX_DB = 38;
const USUAL_SINR_DB = 19;
const USUAL_TX_POWER_DBM = 38;
/** Uplink demand relative to downlink demand. */
const UPLINK_DEMAND = 0.14;
const AIR_DELAY_MS = 3;
const HANDOVERS_PER_USER_S = 0.008;
const MAX_USER_MBPS = 900;
const STANDBY_W = 12;
const IDLE_W = 85;
const BUSY_W = 95;

const bitsPerHz = (sinrDb: number): number =>
  Math.min(BITS_PER_HZ_MAX, EFFICIENCY * Math.log2(1 + fromDecibels(sinrDb)));

export const fiveG: RadioModel<FiveGState> = {
  txPowerDbm: { low: 0, high: 49, usual: USUAL_TX_POWER_DBM },
  channels: "an NR-ARFCN of band n78, 620000 to 653333",
  isChannel: (channel) => channel >= 620_000 && channel <= 653_333,
  firstChannel: (random) => 630_000 + 6_667 * Math.floor(random.uniform() * 3),
  nominalMbps: bitsPerHz(USUAL_SINR_DB) * BANDWIDTH_MHZ * DOWNLINK_SHARE * LAYERS_DL,
  deviceMbpsMax: 60,

  start: (random) => ({ fadingDb: startNoise(FADING, random), users: 0, handoversTried: 0, handoversDone: 0 }),

  step(state, { on, users, demandMbps, elapsedS, txPowerDbm, channel, interference, random }) {
    const fadingDb = stepNoise(state.fadingDb, FADING, elapsedS, random);
    const sinrDb = clamp(
      USUAL_SINR_DB + (txPowerDbm - USUAL_TX_POWER_DBM) - 6 * interference + fadingDb,
      SINR_MIN_DB,
      SINR_MAX_DB,
    );
    const spectrum = bitsPerHz(sinrDb) * BANDWIDTH_MHZ;
    const capacityDlMbps = spectrum * DOWNLINK_SHARE * LAYERS_DL;
    const capacityUlMbps = spectrum * (1 - DOWNLINK_SHARE);
    const usedDl = on ? saturate(demandMbps / capacityDlMbps) : 0;
    const usedUl = on ? saturate((demandMbps * UPLINK_DEMAND) / capacityUlMbps) : 0;
    const userMbps = (capacity: number, used: number): number =>
      users === 0 ? 0 : Math.min(MAX_USER_MBPS, Math.max((capacity * used) / users, capacity * (1 - used)));

    const signal = clamp((sinrDb - SINR_MIN_DB) / (30 - SINR_MIN_DB), 0, 1);
    // Devices that arrive from another access point also cause handovers.
    const expected = on ? HANDOVERS_PER_USER_S * users * elapsedS + Math.max(0, users - state.users) / 2 : 0;
    const tried = random.poisson(expected);
    const failed = Math.min(tried, random.poisson(tried * (0.005 + 0.08 * (1 - signal))));
    const next: FiveGState = {
      fadingDb,
      users,
      handoversTried: state.handoversTried + tried,
      handoversDone: state.handoversDone + tried - failed,
    };
    const radiatedW = fromDecibels(txPowerDbm) / 1_000;
    return {
      state: next,
      sample: {
        "RRC.ConnMean": on ? (state.users + users) / 2 : 0,
        "RRC.ConnMax": on ? Math.max(state.users, users) : 0,
        "DRB.UEThpDl": on ? round(userMbps(capacityDlMbps, usedDl) * 1_000, 0) : 0,
        "DRB.UEThpUl": on ? round(userMbps(capacityUlMbps, usedUl) * 1_000, 0) : 0,
        "RRU.PrbTotDl": round(usedDl * 100, 1),
        "RRU.PrbTotUl": round(usedUl * 100, 1),
        "DRB.AirIfDelayDl": on ? round(AIR_DELAY_MS * queueingFactor(usedDl) * 10, 0) : 0,
        "DRB.AirIfDelayUl": on ? round(AIR_DELAY_MS * 1.6 * queueingFactor(usedUl) * 10, 0) : 0,
        "MM.HoExeIntraReq": next.handoversTried,
        "MM.HoExeIntraSucc": next.handoversDone,
        "PEE.AvgPower": round(on ? IDLE_W + radiatedW * 4 + BUSY_W * usedDl : STANDBY_W, 1),
        sinr_db: on ? round(sinrDb, 1) : 0,
        throughput_mbps: round(capacityDlMbps * usedDl, 2),
        throughput_ul_mbps: round(capacityUlMbps * usedUl, 2),
        tx_power_dbm: txPowerDbm,
        channel,
        powered: on ? 1 : 0,
        load: round(usedDl, 3),
        quality: on ? round(signal * (1 - 0.4 * usedDl ** 3), 3) : 0,
        users: on ? users : 0,
      },
    };
  },
};
