import { describe, expect, it } from "vitest";
import { bearer, newAgent, newApp, PASSWORD, request, signedUp, uniqueName } from "../support.ts";
import { post, secondsAgo } from "../telemetry/requests.ts";

const scrape = async (token: string, query: string, accept?: string): Promise<Response> =>
  await request(`/api/v1/metrics/export?${query}`, {
    headers: { ...bearer(token), ...(accept !== undefined && { Accept: accept }) },
  });

const OPEN_METRICS = "application/openmetrics-text; version=1.0.0";

describe("the scrape endpoint", () => {
  it("returns the latest values of the selected agents, with help, types and an end", async () => {
    const team = uniqueName();
    const { apId, token: agentToken } = await newAgent({}, { team });
    const report = async (ts: string, value: number) =>
      expect((await post({ ts, payload: { load: value, a: { "b-x": 2 } } }, agentToken)).status).toBe(200);
    await report(secondsAgo(2), 0.5);
    await report(secondsAgo(1), 0.25);
    const { token } = await signedUp();
    const response = await scrape(token, `selector=team=${team}`, OPEN_METRICS);
    expect(response.headers.get("Content-Type")).toMatch(
      /^application\/openmetrics-text; version=1.0.0; charset=utf-8/,
    );
    expect(await response.text()).toBe(
      [
        "# HELP U__a_2e_b_2d_x A b x",
        "# TYPE U__a_2e_b_2d_x unknown",
        `U__a_2e_b_2d_x{instance="${apId}"} 2`,
        "# HELP access_point_info Labels of the access point, always 1",
        "# TYPE access_point_info gauge",
        `access_point_info{emulated="false",instance="${apId}",team="${team}"} 1`,
        "# HELP load Load",
        "# TYPE load unknown",
        `load{instance="${apId}"} 0.25`,
        "# EOF",
        "",
      ].join("\n"),
    );
  });

  it("returns the older text format to a client that does not ask for OpenMetrics", async () => {
    const team = uniqueName();
    const { token: agentToken } = await newAgent({}, { team });
    expect((await post({ load: 1 }, agentToken)).status).toBe(200);
    const response = await scrape((await signedUp()).token, `selector=team=${team}`);
    expect(response.headers.get("Content-Type")).toMatch(/^text\/plain; version=0.0.4/);
    expect(await response.text()).toContain("# TYPE load untyped\n");
  });

  it("omits agents that have not reported, and agents out of the caller's grants", async () => {
    const [team, site] = [uniqueName(), uniqueName()];
    const silent = await newAgent({}, { team, site });
    const seen = await newAgent({}, { team, site });
    const hidden = await newAgent({}, { team });
    for (const { token } of [seen, hidden]) expect((await post({ load: 1 }, token)).status).toBe(200);
    const { token } = await signedUp([{ role: "viewer", selector: `site=${site}` }]);
    const text = await (await scrape(token, `selector=team=${team}`)).text();
    expect(text).toContain(seen.apId);
    expect(text).not.toContain(silent.apId);
    expect(text).not.toContain(hidden.apId);
  });

  it("accepts the name and the key of an app, and names agents by the app's label", async () => {
    const team = uniqueName();
    const { apId, token } = await newAgent({}, { team });
    expect((await post({ load: 1 }, token)).status).toBe(200);
    const { appName } = await newApp({ agent_label: "host" });
    const response = await request(`/api/v1/metrics/export?selector=team=${team}`, {
      headers: { Authorization: `Basic ${btoa(`${appName}:${PASSWORD}`)}` },
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain(`load{host="${apId}"} 1\n`);
  });

  it("rejects a selector with a wrong syntax with 422", async () => {
    expect((await scrape((await signedUp()).token, "selector=%3D")).status).toBe(422);
  });
});
