import { describe, expect, it } from "vitest";
import { Invalid, Malformed } from "../../../src/lib/errors.ts";
import type { Matcher } from "../../../src/protocols/prometheus/remote-read.ts";
import { downloadPoints } from "../../../src/telemetry/export/download.ts";
import type { ExportSources } from "../../../src/telemetry/export/export-sources.ts";
import { exportLatest } from "../../../src/telemetry/export/latest-values.ts";
import { readRemotely } from "../../../src/telemetry/export/remote-read.ts";
import type { Point } from "../../../src/telemetry/pending-samples.ts";
import { decodeFrames, decodeReadResponse, encodeRequest } from "../../support/protocols/remote-read.ts";
import { ACTOR, agent, at, MINUTE_MS, NOW_MS, series, sourcesOf, type World } from "./exports-sources.ts";

const matcher = (name: string, type: Matcher["type"], value: string): Matcher => ({ name, type, value });

async function read(world: World, matchers: Matcher[], accepted = [1], periodMs = MINUTE_MS) {
  const query = { startMs: NOW_MS - periodMs, endMs: NOW_MS, matchers, hints: undefined };
  const response = await readRemotely(sourcesOf(world), ACTOR, encodeRequest([query], accepted));
  const found = response.type === "samples" ? (decodeReadResponse(response.body)[0] ?? []) : await framesOf(response);
  return found.map(({ labels, samples }) => ({
    series: labels.map(([name, value]) => `${name}=${value}`).join(),
    values: (samples as Point[]).map(({ value }) => value),
  }));
}

async function framesOf({ frames }: { frames: AsyncGenerator<Uint8Array> }) {
  const found = [];
  for await (const frame of frames) found.push(...decodeFrames(frame));
  return found;
}

describe("remote read", () => {
  const world: World = {
    agents: [agent("ap-2", { site: "b" }), agent("ap-1", { site: "a", "x/y": "1" })],
    stored: [
      series("ap-1", "load", 1, 2),
      series("ap-1", 'load{cpu="0"}', 3),
      series("ap-1", "RRC.ConnMean", 4),
      series("ap-2", "load", 5),
    ],
    pending: [{ apId: "ap-2", tsMs: NOW_MS, metrics: { load: 6, users: 7 }, texts: { load: "x" } }],
  };

  it.each([[[1]], [[0]]])("that accepts %j returns the series in the order of Prometheus", async (accepted) => {
    expect(await read(world, [matcher("__name__", "=~", "load|users|access_point_info")], accepted)).toEqual([
      { series: "U__x_2f_y=1,__name__=access_point_info,instance=ap-1,site=a", values: [1, 1] },
      { series: "__name__=access_point_info,instance=ap-2,site=b", values: [1, 1] },
      { series: "__name__=load,cpu=0,instance=ap-1", values: [3] },
      { series: "__name__=load,instance=ap-1", values: [1, 2] },
      { series: "__name__=load,instance=ap-2", values: [5, 6] },
      { series: "__name__=users,instance=ap-2", values: [7] },
    ]);
  });

  it("finds escaped and original names, and returns them as the query has them", async () => {
    const found = (name: string) => [{ series: `__name__=${name},instance=ap-1`, values: [4] }];
    expect(await read(world, [matcher("__name__", "=", "U__RRC_2e_ConnMean")])).toEqual(found("U__RRC_2e_ConnMean"));
    expect(await read(world, [matcher("__name__", "=", "RRC.ConnMean")])).toEqual(found("RRC.ConnMean"));
  });

  it("selects agents by their label, and the series of agents by their labels", async () => {
    expect(
      await read(world, [matcher("instance", "=", "ap-2"), matcher("__name__", "!=", "access_point_info")]),
    ).toEqual([
      { series: "__name__=load,instance=ap-2", values: [5, 6] },
      { series: "__name__=users,instance=ap-2", values: [7] },
    ]);
    expect(await read(world, [matcher("__name__", "=", "access_point_info"), matcher("site", "=", "b")])).toEqual([
      { series: "__name__=access_point_info,instance=ap-2,site=b", values: [1, 1] },
    ]);
  });

  it.each([[[1]], [[0]]])("that accepts %j joins metrics whose series have the same labels", async (accepted) => {
    const stored = [
      { ...series("ap-1", 'load{a="2",b="1"}'), points: [at(4, 1), at(2, 2)] },
      { ...series("ap-1", 'load{b="1",a="2"}'), points: [at(3, 3), at(2, 4)] },
      series("ap-1", "req", 5),
      series("ap-1", 'req{route=""}', 6),
      series("ap-1", 'x{exported_instance="a"}', 7),
      series("ap-1", 'x{instance="a"}', 8),
      series("ap-2", "req", 9),
    ];
    const pending = [{ apId: "ap-1", tsMs: NOW_MS, metrics: { 'load{a="2",b="1",c=""}': 10 }, texts: {} }];
    expect(await read({ ...world, stored, pending }, [matcher("__name__", "=~", "load|req|x")], accepted)).toEqual([
      { series: "__name__=load,a=2,b=1,instance=ap-1", values: [1, 3, 2, 10] },
      { series: "__name__=req,instance=ap-1", values: [5] },
      { series: "__name__=req,instance=ap-2", values: [9] },
      { series: "__name__=x,exported_instance=a,instance=ap-1", values: [7] },
    ]);
  });

  it("joins at most 100 metrics to a series", async () => {
    const stored = Array.from({ length: 102 }, (_, i) => ({
      ...series("ap-1", `load{x${String(i).padStart(3, "0")}=""}`),
      points: [at(200 - i, i)],
    }));
    expect(await read({ ...world, stored }, [matcher("__name__", "=", "load")], [1], 5 * MINUTE_MS)).toEqual([
      { series: "__name__=load,instance=ap-1", values: Array.from({ length: 100 }, (_, i) => i) },
      { series: "__name__=load,instance=ap-2", values: [6] },
    ]);
  });

  it("has few samples of the series of agents over a long period", async () => {
    const [info] = await read(world, [matcher("__name__", "=", "access_point_info")], [1], 24 * 60 * MINUTE_MS);
    expect(info?.values).toHaveLength(361);
  });

  it("rejects an expression that is not valid, and queries that select too much", async () => {
    await expect(read(world, [matcher("__name__", "=~", "(")])).rejects.toThrow(Malformed);
    await expect(read({ ...world, count: 600_000 }, [matcher("__name__", "=", "load")], [0])).rejects.toThrow(
      Malformed,
    );
    await expect(read({ ...world, count: 20_000_000 }, [matcher("__name__", "=", "load")])).rejects.toThrow(Malformed);
  });

  describe("of many series", () => {
    const loads = (length: number) =>
      Array.from({ length }, (_, i) => series("ap-1", `load{cpu="${i % 2}",x="${i}"}`, i));
    const isLoad = matcher("__name__", "=", "load");
    const tooMany = "The request selects more than 50000 series";

    it("counts those that the labels select", async () => {
      const stored = loads(50_001);
      const found = await read({ ...world, stored }, [isLoad, matcher("x", "=", "50000")]);
      expect(found).toEqual([{ series: "__name__=load,cpu=0,instance=ap-1,x=50000", values: [50_000] }]);
      await expect(read({ ...world, stored, pending: [] }, [isLoad])).rejects.toThrow(tooMany);
      const metrics = Object.fromEntries(stored.map(({ metric }) => [metric, 1]));
      const pending = [{ apId: "ap-1", tsMs: NOW_MS, metrics, texts: {} }];
      await expect(read({ ...world, stored: [], pending }, [isLoad])).rejects.toThrow(tooMany);
    });

    it("counts those of all queries of a request", async () => {
      const sources = sourcesOf({ ...world, stored: loads(40_000) });
      const query = (cpu: string) => ({
        startMs: NOW_MS - 1,
        endMs: NOW_MS,
        matchers: [isLoad, matcher("cpu", "=~", cpu)],
        hints: undefined,
      });
      const request = encodeRequest([query("0"), query("1")], [1]);
      expect((await readRemotely(sources, ACTOR, request)).type).toBe("chunks");
      await expect(readRemotely(sources, ACTOR, encodeRequest([query("0"), query("0|1")], [1]))).rejects.toThrow(
        tooMany,
      );
    });

    it("reads a limited number of stored names", async () => {
      const metrics = Object.fromEntries(loads(1_000).map(({ metric }) => [metric, 1]));
      const sources = sourcesOf({ ...world, pending: [{ apId: "ap-1", tsMs: NOW_MS, metrics, texts: {} }] });
      let [pages, end] = [0, 100];
      const store: ExportSources["store"] = {
        ...sources.store,
        async *series() {
          const page = loads(10_000).map(({ apId, metric }) => ({ apId, metric, count: 1 }));
          for (; pages < end; pages++) yield page;
        },
      };
      const query = { startMs: 0, endMs: NOW_MS, matchers: [isLoad, matcher("cpu", "=", "9")], hints: undefined };
      const request = encodeRequest([query], [1]);
      expect((await readRemotely({ ...sources, store }, ACTOR, request)).type).toBe("chunks");
      [pages, end] = [0, 200];
      await expect(readRemotely({ ...sources, store }, ACTOR, request)).rejects.toThrow(
        "The request reads the names of more than 1000000 series",
      );
      expect(pages).toBe(100);
    });
  });
});

describe("the latest values", () => {
  const text = async (world: World) => [...(await exportLatest(sourcesOf(world), ACTOR, [], "openmetrics"))].join("");

  it("are those of the store and of the journals, of agents that are online", async () => {
    const world: World = {
      agents: [agent("ap-1", { site: "a" }), agent("ap-2"), agent("ap-3", {}, NOW_MS - 31_000)],
      stored: [series("ap-1", "load", 1, 2), series("ap-2", 'tx{dev="e0"}', 3), series("ap-3", "load", 9)],
      pending: [{ apId: "ap-1", tsMs: NOW_MS, metrics: { load: 4 }, texts: {} }],
    };
    expect(await text(world)).toBe(
      [
        "# HELP access_point_info Labels of the access point, always 1",
        "# TYPE access_point_info gauge",
        'access_point_info{instance="ap-1",site="a"} 1',
        'access_point_info{instance="ap-2"} 1',
        "# HELP load Load",
        "# TYPE load unknown",
        'load{instance="ap-1"} 4',
        "# HELP tx Tx",
        "# TYPE tx unknown",
        'tx{dev="e0",instance="ap-2"} 3',
        "# EOF",
        "",
      ].join("\n"),
    );
  });

  it("of a time that is in the journal twice are the first ones, unless one is stored", async () => {
    const pending = [1, 2].map((value) => ({
      apId: "ap-1",
      tsMs: NOW_MS - 1_000,
      metrics: { load: value, users: value },
      texts: {},
    }));
    const stored = [{ ...series("ap-1", "users"), points: [at(1, 3)] }];
    const lines = (await text({ agents: [agent("ap-1")], stored, pending })).split("\n");
    expect(lines.filter((line) => /^(load|users)/.test(line))).toEqual([
      'load{instance="ap-1"} 1',
      'users{instance="ap-1"} 3',
    ]);
  });

  it("have one series for each set of labels, with the newest value", async () => {
    const world: World = {
      agents: [agent("ap-1"), agent("ap-2")],
      stored: [
        { ...series("ap-1", "req"), points: [at(3, 1)] },
        { ...series("ap-1", 'req{route=""}'), points: [at(2, 2)] },
        { ...series("ap-1", 'tx{a="2",b="1"}'), points: [at(1, 3)] },
        { ...series("ap-1", 'tx{b="1",a="2"}'), points: [at(1, 4)] },
        series("ap-2", "req", 5),
      ],
      pending: [{ apId: "ap-1", tsMs: NOW_MS - 4_000, metrics: { 'req{route="",x=""}': 6 }, texts: {} }],
    };
    expect((await text(world)).split("\n").filter((line) => /^(req|tx)/.test(line))).toEqual([
      'req{instance="ap-1"} 2',
      'req{instance="ap-2"} 5',
      'tx{a="2",b="1",instance="ap-1"} 3',
    ]);
  });

  it("end 5 minutes after the last one, unless the agent reports less often", async () => {
    const old = (apId: string) => ({ apId, metric: "load", points: [{ tsMs: NOW_MS - 6 * MINUTE_MS, value: 1 }] });
    const world: World = {
      agents: [agent("often"), agent("rarely", {}, NOW_MS, 600)],
      stored: [old("often"), old("rarely")],
    };
    const lines = (await text(world)).split("\n").filter((line) => line.startsWith("load"));
    expect(lines).toEqual(['load{instance="rarely"} 1']);
  });

  it("of no agent are an empty file", async () => {
    expect(await text({ agents: [] })).toBe("# EOF\n");
  });

  it("are rejected if there are too many series", async () => {
    const stored = Array.from({ length: 100_001 }, (_, i) => series("ap-1", `m${i}`, 1));
    await expect(text({ agents: [agent("ap-1")], stored })).rejects.toThrow(Invalid);
  });
});

describe("a download", () => {
  const DAY_MS = 86_400_000;

  /** Downloads from a store whose rollup still has many points that are deleted. Returns the periods that the store is asked for. */
  async function periodsOf(firstDay: number, lastDay: number) {
    const periods: { fromMs: number; toMs: number }[] = [];
    const sources = sourcesOf({ agents: [agent("ap-1")] });
    const store: ExportSources["store"] = {
      ...sources.store,
      count: async ({ fromMs, toMs }) => {
        periods.push({ fromMs, toMs });
        return fromMs < Math.min(toMs, NOW_MS - 30 * DAY_MS) ? 60_000_000 : 0;
      },
      download: async ({ fromMs, toMs }) => {
        periods.push({ fromMs, toMs });
        return new ReadableStream();
      },
    };
    const [fromMs, toMs] = [NOW_MS - firstDay * DAY_MS, NOW_MS - lastDay * DAY_MS];
    const request = { selector: [], fromMs, toMs, format: "csv" } as const;
    const { name } = await downloadPoints({ ...sources, store }, ACTOR, request);
    expect(name).toBe(`metrics-${new Date(fromMs).toISOString().slice(0, 10)}.csv`);
    return periods;
  }

  it("is not rejected because of points that are deleted", async () => {
    const kept = { fromMs: NOW_MS - 30 * DAY_MS, toMs: NOW_MS };
    expect(await periodsOf(90, 0)).toEqual([kept, kept]);
    expect(await periodsOf(90, 60)).toHaveLength(2);
    const whole = { fromMs: NOW_MS - 20 * DAY_MS, toMs: NOW_MS - DAY_MS };
    expect(await periodsOf(20, 1)).toEqual([whole, whole]);
  });
});
