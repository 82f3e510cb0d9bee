import { describe, expect, it } from "vitest";
import { formatMetricName } from "../../../src/protocols/metric-name.ts";
import type { Matcher } from "../../../src/protocols/prometheus/remote-read.ts";
import {
  compareSeries,
  infoSeriesOf,
  SeriesSelector,
  seriesOf,
  toSeriesLabels,
} from "../../../src/protocols/prometheus/series.ts";

const labelsOf = (metric: string, apId = "ap-1", isEscaped = true) =>
  Object.fromEntries(toSeriesLabels(seriesOf(metric, apId, "instance"), isEscaped));

describe("the series of a stored metric", () => {
  it("has the name, the labels and the agent, sorted by name", () => {
    expect(toSeriesLabels(seriesOf('tx{device="eth0",Zone="a"}', "ap-1", "instance"))).toEqual([
      ["Zone", "a"],
      ["__name__", "tx"],
      ["device", "eth0"],
      ["instance", "ap-1"],
    ]);
  });

  it("has escaped names, unless the reader accepts any", () => {
    const metric = formatMetricName("DRB.UEThpDl", { "host.name": "x" });
    expect(labelsOf(metric)).toEqual({ __name__: "U__DRB_2e_UEThpDl", U__host_2e_name: "x", instance: "ap-1" });
    expect(labelsOf(metric, "ap-1", false)).toEqual({ __name__: "DRB.UEThpDl", "host.name": "x", instance: "ap-1" });
  });

  it("renames a label that collides with the one that names the agent", () => {
    expect(labelsOf('up{instance="a:1"}')).toEqual({ __name__: "up", exported_instance: "a:1", instance: "ap-1" });
    expect(labelsOf('up{exported_instance="b",instance="a"}')).toEqual({
      __name__: "up",
      exported_instance: "b",
      exported_exported_instance: "a",
      instance: "ap-1",
    });
  });

  it("has no empty labels and no second name", () => {
    expect(labelsOf('up{__name__="x",a=""}')).toEqual({ __name__: "up", instance: "ap-1" });
  });

  it("is in the order of Prometheus", () => {
    const sorted = ['a{z="1"}', "a", 'b{c="1"}', 'b{c="1",d="1"}', 'b{c="2"}', "b"].map((metric) =>
      toSeriesLabels(seriesOf(metric, "ap-1", "instance")),
    );
    const names = sorted
      .toSorted(compareSeries)
      .map((labels) => labels.map(([name, value]) => `${name}=${value}`).join());
    expect(names).toEqual([
      "__name__=a,instance=ap-1",
      "__name__=a,instance=ap-1,z=1",
      "__name__=b,c=1,d=1,instance=ap-1",
      "__name__=b,c=1,instance=ap-1",
      "__name__=b,c=2,instance=ap-1",
      "__name__=b,instance=ap-1",
    ]);
  });

  it("of an agent has its labels", () => {
    const labels = toSeriesLabels(infoSeriesOf({ site: "uk", "a/b": "1" }, "ap-1", "instance"));
    expect(Object.fromEntries(labels)).toEqual({
      __name__: "access_point_info",
      instance: "ap-1",
      site: "uk",
      U__a_2f_b: "1",
    });
  });
});

describe("matchers", () => {
  const matcher = (text: string): Matcher => {
    const [, name = "", type = "=", value = ""] = /^(.+?)(=~|!~|!=|=)(.*)$/.exec(text) ?? [];
    return { type: type as Matcher["type"], name, value };
  };
  const selectorOf = (texts: string[]) => new SeriesSelector(texts.map(matcher), "instance");
  const selects = (texts: string[], metric: string, apId = "ap-1") =>
    selectorOf(texts).selects(seriesOf(metric, apId, "instance"));

  it.each([
    [["__name__=load"], "load", true],
    [["__name__=load"], 'load{cpu="0"}', true],
    [["__name__=load"], "load2", false],
    [["__name__=U__a_2e_b"], "a.b", true],
    [["__name__=a.b"], "a.b", true],
    [["__name__!=U__a_2e_b"], "a.b", false],
    [["__name__=~U__a_2e_.*"], "a.b", true],
    [["__name__=~a[.]b"], "a.b", true],
    [["__name__!~a[.]b"], "a.b", false],
    [["__name__!~U__a.*"], "a.b", false],
    [["__name__=load", "cpu=0"], 'load{cpu="0"}', true],
    [["__name__=load", "cpu="], "load", true],
    [["__name__=load", "cpu!="], "load", false],
    [["__name__=load", "cpu=~.*"], "load", true],
    [["__name__=load", "cpu!~.+"], "load", true],
    [["__name__=load", "U__host_2e_name=x"], 'load{host.name="x"}', true],
    [["instance=ap-1"], "load", true],
    [["instance=~ap-[23]"], "load", false],
  ])("%j on %j: %s", (texts, metric, expected) => {
    expect(selects(texts, metric)).toBe(expected);
  });

  it("exclude agents before their metrics are read", () => {
    expect(selectorOf(["__name__=load", "instance=~ap-.", "instance!=ap-2"]).selectsAgent("ap-1")).toBe(true);
    expect(selectorOf(["__name__=load", "instance=~ap-.", "instance!=ap-2"]).selectsAgent("ap-2")).toBe(false);
  });

  it("list the names of metrics, if they are texts", () => {
    expect(selectorOf(["__name__=load"]).names).toEqual(["load"]);
    expect(selectorOf(["__name__=~load|U__a_2e_b"]).names).toEqual(["load", "U__a_2e_b", "a.b"]);
    expect(selectorOf(["__name__=~lo.*"]).names).toBeUndefined();
    expect(selectorOf(["__name__!=load"]).names).toBeUndefined();
  });

  it("ask for escaped names, unless they have a name with other characters", () => {
    expect(selectorOf(["__name__=U__a_2e_b", "instance=ä"]).isEscaped).toBe(true);
    expect(selectorOf(["__name__=a.b"]).isEscaped).toBe(false);
    expect(selectorOf(["__name__=up", "host.name=x"]).isEscaped).toBe(false);
  });
});
