import type { Moment, RadioModel } from "./access-point.ts";
import { dailyShare, daylight } from "./daily-load.ts";
import {
  asFactor,
  clamp,
  fromDecibels,
  type Noise,
  queueingFactor,
  round,
  saturate,
  startNoise,
  stepNoise,
  toDecibels,
} from "./math.ts";
import type { Random } from "./random.ts";

/** A LiFi lamp in the ceiling: fast, with a narrow beam that people block for a moment when they walk through it. */

export interface LifiState {
  /** The light path is blocked until this time. */
  blockedUntilMs: number;
  blockages: number;
  aimDb: number;
  clouds: number;
  ledTemperatureC: number;
}

const AIM: Noise = { deviation: 1, memoryS: 15 };
const CLOUDS: Noise = { deviation: 0.5, memoryS: 1_200 };
const USUAL_TX_POWER_DBM = 33;
/** Loss between the lamp and a receiver below it, because light spreads. */
const PATH_LOSS_DB = 48;
const OPTICAL_MIN_DBM = -60;
const USUAL_SNR_DB = 26;
/** Maximum ambient light from the sun through windows and from the lamps. */
const SUN_LUX = 900;
const LAMP_LUX = 320;
/** Ambient light whose noise equals that of the receiver. */
const EQUAL_NOISE_LUX = 700;
const BANDWIDTH_MHZ = 40;
const BITS_PER_HZ_MAX = 8;
const EFFICIENCY = 0.7;
const DELAY_MS = 1;
const ROOM_C = 22;
const LED_HEATING_C = 38;
const LED_MEMORY_S = 400;

/** In a full room. In an empty room the beam is never blocked. */
const BLOCKAGES_PER_S = 1 / 150;
const BLOCKAGE_MIN_S = 1;
const BLOCKAGE_MAX_S = 5;
/** Limits the time that a long step counts: a blockage that began earlier has usually ended. */
const BLOCKAGE_MEAN_S = (BLOCKAGE_MIN_S + BLOCKAGE_MAX_S) / 2;

const bitsPerHz = (snrDb: number): number => Math.min(BITS_PER_HZ_MAX, EFFICIENCY * Math.log2(1 + fromDecibels(snrDb)));

/** Starts a blockage by chance. `presence` is the share (0–1) of the devices that are present. */
export function stepBlockage(
  state: LifiState,
  { nowMs, elapsedS, presence, random }: Pick<Moment, "nowMs" | "elapsedS"> & { presence: number; random: Random },
): LifiState {
  if (nowMs < state.blockedUntilMs) return state;
  const probability = 1 - Math.exp(-BLOCKAGES_PER_S * presence * Math.min(elapsedS, BLOCKAGE_MEAN_S));
  if (!random.chance(probability)) return state;
  const lastsS = random.between(BLOCKAGE_MIN_S, BLOCKAGE_MAX_S);
  return { ...state, blockedUntilMs: nowMs + Math.round(lastsS * 1_000), blockages: state.blockages + 1 };
}

export const isBlocked = ({ blockedUntilMs }: LifiState, nowMs: number): boolean => nowMs < blockedUntilMs;

export const lifi: RadioModel<LifiState> = {
  txPowerDbm: { low: 0, high: 36, usual: USUAL_TX_POWER_DBM },
  channels: "1 to 8",
  isChannel: (channel) => channel >= 1 && channel <= 8,
  firstChannel: (random) => 1 + Math.floor(random.uniform() * 8),
  nominalMbps: bitsPerHz(USUAL_SNR_DB) * BANDWIDTH_MHZ,
  deviceMbpsMax: 50,

  start: (random) => ({
    blockedUntilMs: 0,
    blockages: 0,
    aimDb: startNoise(AIM, random),
    clouds: startNoise(CLOUDS, random),
    ledTemperatureC: ROOM_C,
  }),

  step(state, moment) {
    const { nowMs, elapsedS, hour, users, demandMbps, txPowerDbm, channel, interference, random } = moment;
    const aimDb = stepNoise(state.aimDb, AIM, elapsedS, random);
    const clouds = stepNoise(state.clouds, CLOUDS, elapsedS, random);
    const blocked = isBlocked(state, nowMs);
    const linked = moment.on && !blocked;

    const lamps = moment.on ? LAMP_LUX * (0.2 + 0.8 * dailyShare("LiFi", hour)) * fromDecibels(txPowerDbm - 33) : 0;
    const ambientLux = clamp(SUN_LUX * daylight(hour) * asFactor(clouds) + lamps, 0, 20_000);
    const opticalDbm = Math.max(OPTICAL_MIN_DBM, txPowerDbm - PATH_LOSS_DB + aimDb);
    const ambientNoiseDb = toDecibels(1 + ambientLux / EQUAL_NOISE_LUX);
    // Electrical power is proportional to the square of optical power: one decibel of light is two decibels of signal.
    const snrDb = clamp(
      USUAL_SNR_DB + 3 + 2 * (txPowerDbm - USUAL_TX_POWER_DBM + aimDb) - ambientNoiseDb - 4 * interference,
      0,
      45,
    );
    const capacityMbps = Math.max(1, bitsPerHz(snrDb) * BANDWIDTH_MHZ);
    const used = linked ? saturate(demandMbps / capacityMbps) : 0;
    const drive = moment.on ? clamp(fromDecibels(txPowerDbm - USUAL_TX_POWER_DBM), 0, 2) : 0;
    const targetC = ROOM_C + LED_HEATING_C * drive * (0.85 + 0.15 * used);
    const ledTemperatureC = targetC + (state.ledTemperatureC - targetC) * Math.exp(-elapsedS / LED_MEMORY_S);
    const signal = clamp(snrDb / 32, 0, 1);
    return {
      state: { ...state, aimDb, clouds, ledTemperatureC },
      sample: {
        optical_rx_power_dbm: linked ? round(opticalDbm, 1) : OPTICAL_MIN_DBM,
        snr_db: linked ? round(snrDb, 1) : 0,
        throughput_mbps: round(capacityMbps * used, 2),
        ambient_light_lux: round(ambientLux, 0),
        blockage: moment.on && blocked ? 1 : 0,
        blockages: state.blockages,
        led_temperature_c: round(ledTemperatureC, 1),
        latency_ms: linked ? round(DELAY_MS * queueingFactor(used), 2) : 0,
        tx_power_dbm: txPowerDbm,
        channel,
        powered: moment.on ? 1 : 0,
        load: round(used, 3),
        quality: linked ? round(signal * (1 - 0.4 * used ** 3), 3) : 0,
        users: linked ? users : 0,
      },
    };
  },
};
