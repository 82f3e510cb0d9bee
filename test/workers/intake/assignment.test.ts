import { describe, expect, it } from "vitest";
import type { StoredGrant } from "../../../src/accounts/account-tables.ts";
import { adminToken, logIn, newAgent, newApp, PASSWORD, send, tokenOf, uniqueName } from "../support.ts";
import { openWisp, post, postLines, postOtlp, postSeries, storedOf } from "./intake-requests.ts";

/** Writes one value for an agent. Returns the status and the text of the response. */
async function write(apId: string, token: string, labels: Record<string, string> = { instance: apId }) {
  const samples: [number, number][] = [[1, Date.now() - 5_000]];
  const response = await postSeries([{ labels: { __name__: "up", ...labels }, samples }], token);
  return { status: response.status, text: (await response.text()).replaceAll(apId, "NAME") };
}

const exists = async (apId: string) =>
  (await send("GET", `/api/v1/agents/${apId}`, undefined, await adminToken())).status === 200;

async function appWithGrants(permissions: object, grants: StoredGrant[]): Promise<string> {
  const { appName } = await newApp(permissions);
  const path = `/api/v1/third_party_apps/${appName}/grants`;
  expect((await send("PUT", path, { grants }, await adminToken())).status).toBe(200);
  return await tokenOf(appName, PASSWORD, "third_party_app");
}

const UNKNOWN = { status: 400, text: JSON.stringify({ detail: "NAME is not an agent" }) };

describe("an app", () => {
  it("needs the permission to write", async () => {
    const [agent, app] = [await newAgent(), await newApp({})];
    expect((await write(agent.apId, app.token)).status).toBe(403);
    expect((await postLines("a f=1", app.token)).status).toBe(403);
    expect((await postOtlp({}, app.token)).status).toBe(403);
    const headers = { Authorization: `Bearer ${app.token}` };
    expect((await post(openWisp(agent.apId), "{}", headers)).status).toBe(403);
  });

  it("cannot tell an agent that it does not see from an absent one", async () => {
    const site = uniqueName();
    const token = await appWithGrants({ write: true }, [{ role: "viewer", selector: `site=${site}` }]);
    const [seen, hidden] = [await newAgent({}, { site }), await newAgent({}, { site: "elsewhere" })];
    expect((await write(seen.apId, token)).status).toBe(204);
    expect(await write(hidden.apId, token)).toEqual(UNKNOWN);
    expect(await write(uniqueName(), token)).toEqual(UNKNOWN);
    expect(await storedOf(hidden.apId, hidden.token)).toEqual({});
  });

  it("writes only for the agents of its list", async () => {
    const [listed, other] = [await newAgent(), await newAgent()];
    const { token } = await newApp({ write: true, ap_ids: [listed.apId] });
    expect((await write(listed.apId, token)).status).toBe(204);
    expect(await write(other.apId, token)).toEqual(UNKNOWN);
  });

  it("may name the agent by another label", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true, agent_label: "ap" })];
    const { apId } = agent;
    expect((await write(apId, app.token, { ap: apId, instance: "localhost:9100" })).status).toBe(204);
    expect((await postLines(`m,ap=${apId},host=x f=1`, app.token)).status).toBe(204);
    const attributes = [{ key: "ap", value: { stringValue: apId } }];
    const metrics = [{ name: "g", gauge: { dataPoints: [{ asInt: "1" }] } }];
    const body = { resourceMetrics: [{ resource: { attributes }, scopeMetrics: [{ metrics }] }] };
    expect(await (await postOtlp(body, app.token)).json()).toEqual({});
    const stored = await storedOf(apId, app.token);
    expect(Object.keys(stored).toSorted()).toEqual(["g", 'm.f{host="x"}', 'up{instance="localhost:9100"}']);
  });

  it("registers absent agents only with the permission", async () => {
    const [writer, registrar] = [await newApp({ write: true }), await newApp({ write: true, register: true })];
    const apId = `${uniqueName()}:9100`;
    expect(await write(apId, writer.token)).toEqual(UNKNOWN);
    expect(await exists(apId)).toBe(false);
    expect((await write(apId, registrar.token)).status).toBe(204);
    expect(await exists(apId)).toBe(true);
    expect(await storedOf(apId, registrar.token)).toEqual({ up: [1] });
    expect((await write(apId, registrar.token)).status).toBe(204);
  });

  it("registers no agent with an invalid or reserved name, or outside its scope", async () => {
    const { token } = await newApp({ write: true, register: true });
    for (const name of ["with space", "emu-5g-00000000-0001", "x".repeat(65)]) {
      expect(await write(name, token)).toEqual(UNKNOWN);
      expect(await exists(name)).toBe(false);
    }
    const limited = await appWithGrants({ write: true, register: true }, [{ role: "manager", selector: "site=here" }]);
    const apId = uniqueName();
    expect(await write(apId, limited)).toEqual(UNKNOWN);
    expect(await exists(apId)).toBe(false);
  });

  it("loses nothing if several requests register the same agent at once", async () => {
    const { token } = await newApp({ write: true, register: true });
    const apId = uniqueName();
    const tsMs = Date.now() - 5_000;
    const responses = Array.from({ length: 8 }, (_, i) =>
      postSeries([{ labels: { __name__: `m${i}`, instance: apId }, samples: [[i, tsMs]] }], token),
    );
    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual(Array(8).fill(204));
    expect(Object.keys(await storedOf(apId, token)).length).toBe(8);
  });

  it("registers a hundred agents with a request, and the others when it is repeated", async () => {
    const { token } = await newApp({ write: true, register: true });
    const names = Array.from({ length: 150 }, () => uniqueName());
    // None of these may be registered, so they take no place of those that may.
    const reserved = Array.from({ length: 150 }, (_, i) => `emu-5g-00000000-${1000 + i}`);
    const seriesOf = (name: string) => ({
      labels: { __name__: "up", instance: name },
      samples: [[1, Date.now() - 5_000]] as [number, number][],
    });
    const series = [...reserved, ...names].map(seriesOf);
    const first = await postSeries(series, token);
    expect([first.status, first.headers.get("Retry-After")]).toEqual([503, "2"]);
    expect((await postSeries(series, token)).status).toBe(400);
    for (const name of [names[0] ?? "", names[149] ?? ""]) expect(await storedOf(name, token)).toEqual({ up: [1] });
  });

  it("assigns values by the resource, also if they are about another agent", async () => {
    const [agent, other, app] = [await newAgent(), await newAgent(), await newApp({ write: true })];
    const hostOf = (stringValue: string) => [{ key: "host.name", value: { stringValue } }];
    const metrics = [{ name: "rtt", gauge: { dataPoints: [{ asInt: "7", attributes: hostOf(other.apId) }] } }];
    const resource = { attributes: hostOf(agent.apId) };
    expect((await postOtlp({ resourceMetrics: [{ resource, scopeMetrics: [{ metrics }] }] }, app.token)).status).toBe(
      200,
    );
    expect(await storedOf(agent.apId, app.token)).toEqual({ [`rtt{host.name="${other.apId}"}`]: [7] });
    expect(await storedOf(other.apId, app.token)).toEqual({});
  });

  it("registers an agent that cannot log in", async () => {
    const { token } = await newApp({ write: true, register: true });
    const apId = uniqueName();
    expect((await write(apId, token)).status).toBe(204);
    expect((await logIn(apId, PASSWORD, "agent")).status).toBe(401);
    expect((await logIn(apId, "", "agent")).status).not.toBe(200);
  });
});
