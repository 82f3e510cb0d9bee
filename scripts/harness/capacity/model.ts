import type { FigureId } from "../bench/report.ts";

/**
 * What each part has to carry for a network of some size, out of what one access point, one viewer and one stream were measured to cost.
 * Everything grows with the number of access points and with nothing else: each is stored, kept and read by its own name.
 */

export interface Demand {
  accessPoints: number;
  reportEveryS: number;
  mqttShare: number;
  viewersPerThousand: number;
  streamsPerThousand: number;
  keptDays: number;
}

export const DEFAULT_DEMAND: Omit<Demand, "accessPoints"> = {
  reportEveryS: 1,
  mqttShare: 0.5,
  viewersPerThousand: 5,
  streamsPerThousand: 5,
  keptDays: 30,
};

/** A figure of the bench, or something that was told besides. */
export interface Place {
  id: FigureId;
  detail?: string;
}

/** Where each figure of the model is found in a run of the bench. */
export const MEASURED = {
  workerPerReportUs: { id: "ingest-http", detail: "CPU µs of worker each" },
  clickhousePerReportUs: { id: "ingest-http", detail: "CPU µs of clickhouse each" },
  reportsPerSecond: { id: "ingest-http" },
  workerPerMessageUs: { id: "ingest-mqtt", detail: "CPU µs of worker each" },
  clickhousePerMessageUs: { id: "ingest-mqtt", detail: "CPU µs of clickhouse each" },
  brokerPerMessageUs: { id: "ingest-mqtt", detail: "CPU µs of broker each" },
  bridgePerMessageUs: { id: "ingest-mqtt", detail: "CPU µs of bridge each" },
  workerPerLookUs: { id: "live-news", detail: "CPU µs of worker each" },
  workerPerChartUs: { id: "chart-day", detail: "CPU µs of worker each" },
  clickhousePerChartUs: { id: "chart-day", detail: "CPU µs of clickhouse each" },
  workerPerCallbackUs: { id: "callback", detail: "CPU µs of workerd each" },
  socketKb: { id: "idle-socket" },
  workerPerLoginUs: { id: "login", detail: "CPU µs of worker each" },
  passwordPerLoginUs: { id: "login", detail: "CPU µs of passwords each" },
  bytesPerPoint: { id: "bytes-points_v1" },
  bytesPerMinute: { id: "bytes-minutes_v1" },
} as const satisfies Record<string, Place>;

export type Figures = Record<keyof typeof MEASURED, number>;

/** Ten numbers in a report, as in the bench. */
const FIELDS = 10;
const DAY_S = 86_400;
const ROLLUP_DAYS = 400;
/** A page shows this many charts, each of which asks once a second for what is new. */
const CHARTS_PER_VIEWER = 4;
/** And a chart over a day now and then. */
const LONG_CHARTS_PER_VIEWER_AND_MINUTE = 1;
const MESSAGES_PER_STREAM_AND_SECOND = 0.2;
/** A token runs for an hour. */
const LOGINS_PER_ACCESS_POINT_AND_SECOND = 1 / 3_600;
/** A bus that is always full is late: parts are meant to run at this share of what they can. */
const COMFORTABLE = 0.5;

const GIB = 1024 ** 3;

export interface PartLoad {
  part: string;
  what: string;
  unit: string;
  value: number;
}

export function loadOn(demand: Demand, figures: Figures): PartLoad[] {
  const { accessPoints, reportEveryS, mqttShare, keptDays } = demand;
  const reports = accessPoints / reportEveryS;
  const overHttp = reports * (1 - mqttShare);
  const overMqtt = reports * mqttShare;
  const viewers = (accessPoints * demand.viewersPerThousand) / 1_000;
  const streams = (accessPoints * demand.streamsPerThousand) / 1_000;
  const looks = viewers * CHARTS_PER_VIEWER;
  const longCharts = (viewers * LONG_CHARTS_PER_VIEWER_AND_MINUTE) / 60;
  const logins = accessPoints * LOGINS_PER_ACCESS_POINT_AND_SECOND;
  const cores = (...costs: [count: number, us: number][]): number =>
    costs.reduce((sum, [count, us]) => sum + (count * us) / 1e6, 0) / COMFORTABLE;

  const points = reports * FIELDS * DAY_S * keptDays;
  const minutes = accessPoints * FIELDS * 1_440 * ROLLUP_DAYS;
  return [
    { part: "all", what: "reports", unit: "a second", value: reports },
    {
      part: "Worker and its objects",
      what: "CPU",
      unit: "cores",
      value: cores(
        [overHttp, figures.workerPerReportUs],
        [overMqtt, figures.workerPerMessageUs],
        [looks, figures.workerPerLookUs],
        [longCharts, figures.workerPerChartUs],
        [logins, figures.workerPerLoginUs],
        [streams * MESSAGES_PER_STREAM_AND_SECOND, figures.workerPerCallbackUs],
      ),
    },
    {
      part: "Worker and its objects",
      what: "shards (AGENT_SHARDS)",
      unit: "objects",
      value: Math.max(1, Math.ceil(reports / (figures.reportsPerSecond * COMFORTABLE))),
    },
    {
      part: "Worker and its objects",
      what: "memory of job sockets",
      unit: "GiB",
      value: (streams * figures.socketKb * 1_000) / GIB,
    },
    {
      part: "ClickHouse",
      what: "CPU",
      unit: "cores",
      value: cores(
        [overHttp, figures.clickhousePerReportUs],
        [overMqtt, figures.clickhousePerMessageUs],
        [longCharts, figures.clickhousePerChartUs],
      ),
    },
    {
      part: "ClickHouse",
      what: "disk, each copy",
      unit: "GiB",
      value: (points * figures.bytesPerPoint + minutes * figures.bytesPerMinute) / GIB,
    },
    { part: "broker", what: "connections", unit: "open", value: accessPoints * mqttShare },
    {
      part: "broker",
      what: "CPU (the local one)",
      unit: "cores",
      value: cores([overMqtt, figures.brokerPerMessageUs]),
    },
    { part: "bridge", what: "CPU", unit: "cores", value: cores([overMqtt, figures.bridgePerMessageUs]) },
    {
      part: "passwords",
      what: "CPU, chosen passwords only",
      unit: "cores",
      value: cores([logins, figures.passwordPerLoginUs]),
    },
    { part: "libSQL", what: "logins", unit: "a second", value: logins },
  ];
}
