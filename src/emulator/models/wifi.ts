import type { RadioModel } from "./access-point.ts";
import { clamp, type Noise, queueingFactor, round, saturate, startNoise, stepNoise } from "./math.ts";

/** A WiFi 6 access point with 80 MHz and two streams. The counters of bytes and retries never decrease. */

export interface WifiState {
  fadingDb: number;
  noiseDb: number;
  txBytes: number;
  rxBytes: number;
  retries: number;
}

const FADING: Noise = { deviation: 3, memoryS: 20 };
const NOISE: Noise = { deviation: 1.2, memoryS: 60 };
const NOISE_FLOOR_DBM = -94;
/** Maximum noise from other networks on the channel. */
const INTERFERENCE_DB = 9;
/** Maximum share of airtime that other networks use. */
const FOREIGN_AIRTIME = 0.25;
const USUAL_TX_POWER_DBM = 20;
const PATH_LOSS_DB = 78;
const RSSI_MIN_DBM = -95;
const RSSI_MAX_DBM = -25;
/** Minimum signal-to-noise ratio of each modulation and coding scheme; the first one is always usable. */
const MCS_SNR_DB = [5, 8, 11, 14, 18, 22, 24, 26, 30, 33, 36, 39];
/** Data rates of the schemes: 802.11ax, 80 MHz, two streams, 0.8 µs guard interval. */
const MCS_MBPS = [72, 144, 216, 288, 432, 576, 648, 721, 865, 961, 1_081, 1_201];
/** Share of the data rate that is left for payload. */
const EFFICIENCY = 0.6;
/** Uplink demand relative to downlink demand. */
const UPLINK_DEMAND = 0.2;
const DELAY_MS = 2;
const BYTES_PER_FRAME = 1_500;
const BYTES_PER_MBIT = 125_000;
const CHANNELS = new Set([
  ...Array.from({ length: 13 }, (_, index) => index + 1),
  ...[36, 40, 44, 48, 52, 56, 60, 64],
  ...[100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144],
  ...[149, 153, 157, 161, 165],
]);
const FIRST_CHANNELS = [36, 52, 100, 149];

export const wifi: RadioModel<WifiState> = {
  txPowerDbm: { low: 0, high: 30, usual: USUAL_TX_POWER_DBM },
  channels: "1 to 13, 36 to 64 or 100 to 144 in steps of 4, or 149 to 165 in steps of 4",
  isChannel: (channel) => CHANNELS.has(channel),
  firstChannel: (random) => FIRST_CHANNELS[Math.floor(random.uniform() * FIRST_CHANNELS.length)] ?? 36,
  nominalMbps: 721 * EFFICIENCY,
  deviceMbpsMax: 40,

  start: (random) => ({
    fadingDb: startNoise(FADING, random),
    noiseDb: startNoise(NOISE, random),
    txBytes: 0,
    rxBytes: 0,
    retries: 0,
  }),

  step(state, { on, users, demandMbps, elapsedS, txPowerDbm, channel, interference, random }) {
    const fadingDb = stepNoise(state.fadingDb, FADING, elapsedS, random);
    const noiseDb = stepNoise(state.noiseDb, NOISE, elapsedS, random);
    const noiseDbm = clamp(NOISE_FLOOR_DBM + INTERFERENCE_DB * interference + noiseDb, -100, -70);
    const rssiDbm = clamp(txPowerDbm - PATH_LOSS_DB + fadingDb, RSSI_MIN_DBM, RSSI_MAX_DBM);
    const snrDb = Math.max(0, rssiDbm - noiseDbm);
    const mcs = Math.max(
      0,
      MCS_SNR_DB.findLastIndex((minimum) => minimum <= snrDb),
    );
    const capacityMbps = (MCS_MBPS[mcs] ?? 0) * EFFICIENCY * (1 - FOREIGN_AIRTIME * interference);
    const used = on ? saturate((demandMbps * (1 + UPLINK_DEMAND)) / capacityMbps) : 0;
    const carriedMbps = capacityMbps * used;
    const downMbps = carriedMbps / (1 + UPLINK_DEMAND);
    const upMbps = carriedMbps - downMbps;
    const foreign = FOREIGN_AIRTIME * interference;
    const airtime = on ? foreign + (1 - foreign) * used : 0;

    // Retries grow with the airtime, because of collisions, and with a weak signal.
    const signal = clamp((snrDb - 4) / 36, 0, 1);
    const retryRatio = on && users > 0 ? clamp(0.01 + 0.22 * airtime ** 2 + 0.15 * (1 - signal) ** 2, 0, 1) : 0;
    const frames = (carriedMbps * BYTES_PER_MBIT * elapsedS) / BYTES_PER_FRAME;
    const next: WifiState = {
      fadingDb,
      noiseDb,
      txBytes: state.txBytes + Math.round(downMbps * BYTES_PER_MBIT * elapsedS),
      rxBytes: state.rxBytes + Math.round(upMbps * BYTES_PER_MBIT * elapsedS),
      retries: state.retries + random.poisson(frames * retryRatio),
    };
    return {
      state: next,
      sample: {
        channel_utilisation_pct: round(airtime * 100, 1),
        noise_dbm: round(noiseDbm, 1),
        tx_power_dbm: txPowerDbm,
        rssi_dbm: on ? round(rssiDbm, 1) : RSSI_MIN_DBM,
        snr_db: on ? round(snrDb, 1) : 0,
        mcs: on ? mcs : 0,
        associations: on ? users : 0,
        tx_bytes: next.txBytes,
        rx_bytes: next.rxBytes,
        retries: next.retries,
        retry_ratio: round(retryRatio, 3),
        throughput_mbps: round(downMbps, 2),
        throughput_ul_mbps: round(upMbps, 2),
        latency_ms: on ? round(DELAY_MS * queueingFactor(airtime), 2) : 0,
        channel,
        powered: on ? 1 : 0,
        load: round(used, 3),
        quality: on ? round(signal * (1 - 0.4 * airtime ** 3), 3) : 0,
        users: on ? users : 0,
      },
    };
  },
};
