import { describe, expect, it } from "vitest";
import { bearer, newAgent, newApp, PASSWORD, uniqueName } from "../support.ts";
import { gzip, openWisp, post, storedOf } from "./intake-requests.ts";

const REPORT = JSON.stringify({
  type: "DeviceMonitoring",
  general: { hostname: "x", uptime: 60 },
  interfaces: [{ name: "wlan0", wireless: { channel: 36, clients: [{ mac: "a" }] } }],
});
const JSON_TYPE = { "Content-Type": "application/json" };

/** Returns a time as OpenWISP's agent writes it. */
function timeOf(date: Date): string {
  const [day = "", clock = ""] = date.toISOString().slice(0, 19).split("T");
  return `${day.split("-").toReversed().join("-")}_${clock}.000000`;
}

describe("a report of OpenWISP's agent", () => {
  it("is stored when it is acknowledged, with the agent's name and password", async () => {
    const { apId, token } = await newAgent();
    const query = `?key=${encodeURIComponent(PASSWORD)}&time=${timeOf(new Date(Date.now() - 10_000))}&current=true`;
    const response = await post(openWisp(apId, query), REPORT, JSON_TYPE);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ status: "success", accepted: 3, rejected: [] });
    expect(await storedOf(apId, token)).toEqual({
      "general.uptime": [60],
      'interfaces.wireless.channel{interface="wlan0"}': [36],
      'interfaces.wireless.clients{interface="wlan0"}': [1],
    });
  });

  it("is stored once if it is sent again", async () => {
    const { apId, token } = await newAgent();
    const query = `?time=${timeOf(new Date(Date.now() - 10_000))}`;
    for (let i = 0; i < 2; i += 1) await post(openWisp(apId, query), REPORT, { ...JSON_TYPE, ...bearer(token) });
    expect(await storedOf(apId, token)).toMatchObject({ "general.uptime": [60] });
  });

  it("may be compressed with gzip", async () => {
    const { apId, token } = await newAgent();
    const headers = { ...JSON_TYPE, "Content-Encoding": "gzip", ...bearer(token) };
    expect((await post(openWisp(apId), await gzip(REPORT), headers)).status).toBe(200);
  });

  it("is rejected with a wrong key, for another agent, and without its type", async () => {
    const [agent, other, app] = [await newAgent(), await newAgent(), await newApp({ write: true })];
    const ofAgent = { ...JSON_TYPE, ...bearer(agent.token) };
    const ofApp = { ...JSON_TYPE, ...bearer(app.token) };
    expect((await post(openWisp(agent.apId, "?key=wrong-password"), REPORT, JSON_TYPE)).status).toBe(401);
    expect((await post(openWisp(other.apId), REPORT, ofAgent)).status).toBe(403);
    expect((await post(openWisp(agent.apId), "{}", ofAgent)).status).toBe(400);
    expect((await post(openWisp(agent.apId, "?time=yesterday"), REPORT, ofAgent)).status).toBe(400);
    expect((await post(openWisp(other.apId), REPORT, ofApp)).status).toBe(200);
    expect((await post(openWisp(uniqueName()), REPORT, ofApp)).status).toBe(404);
  });
});
