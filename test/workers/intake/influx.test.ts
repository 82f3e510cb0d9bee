import { describe, expect, it } from "vitest";
import { bearer, newAgent, newApp, PASSWORD } from "../support.ts";
import { gzip, INFLUX, INFLUX_1, INFLUX_2, post, postLines, storedOf } from "./intake-requests.ts";

const tsMs = () => Date.now() - 5_000;

describe("lines of InfluxDB", () => {
  it("are stored when they are acknowledged", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const lines = `cpu,host=${agent.apId},cpu=cpu0 idle=98.5,ok=t ${tsMs()}\nsystem,host=${agent.apId} uptime=7i,os="x y" ${tsMs()}`;
    const response = await postLines(lines, app.token);
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(await storedOf(agent.apId, app.token)).toEqual({
      'cpu.idle{cpu="cpu0"}': [98.5],
      'cpu.ok{cpu="cpu0"}': [1],
      "system.uptime": [7],
      "system.os": ["x y"],
    });
  });

  it("have the time of receipt if they have none", async () => {
    const { apId, token } = await newAgent();
    expect((await postLines("a f=1", token)).status).toBe(204);
    expect(await storedOf(apId, token)).toEqual({ "a.f": [1] });
  });

  it("are rejected by their numbers, and all others are stored", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const lines = [`a,host=${agent.apId} f=1`, "b", "c,host=unknown-ap f=1", `d,host=${agent.apId} f=2`];
    const response = await postLines(lines.join("\n"), app.token);
    expect(response.status).toBe(400);
    const message = "partial write: line 2 has no fields; unknown-ap is not an agent";
    expect(await response.json()).toEqual({ code: "invalid", message, line: 2, error: message });
    expect(await storedOf(agent.apId, app.token)).toEqual({ "a.f": [1], "d.f": [2] });
  });

  it("are accepted with the credentials of the clients of both versions", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const write = async (path: string, field: string, headers: Record<string, string>) =>
      (await post(path, `m,host=${agent.apId} ${field}=1`, headers)).status;
    const token = (text: string) => ({ Authorization: `Token ${text}` });
    expect(await write(`${INFLUX}?org=o&bucket=b`, "a", token(`${app.appName}:${PASSWORD}`))).toBe(204);
    expect(await write(`${INFLUX}?org=o&bucket=b`, "b", token(app.token))).toBe(204);
    expect(await write(`${INFLUX_1}?db=d&u=${app.appName}&p=${encodeURIComponent(PASSWORD)}`, "c", {})).toBe(204);
    expect(await write(`${INFLUX_1}?db=d`, "d", token(`agent/${agent.apId}:${PASSWORD}`))).toBe(204);
    expect(await write(`${INFLUX_1}?u=${app.appName}&p=wrong-password`, "e", {})).toBe(401);
    expect(await write(INFLUX_1, "f", {})).toBe(401);
    const stored = await storedOf(agent.apId, app.token);
    expect(Object.keys(stored).toSorted()).toEqual(["m.a", "m.b", "m.c", `m.d{host="${agent.apId}"}`]);
  });

  it("are accepted from clients that cannot be given a path", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true, agent_label: "hostname" })];
    // As icinga2 sends them.
    const lines = `disk,hostname=${agent.apId},service=root,metric=/\\ free unit="bytes",value=12345 ${Math.floor(tsMs() / 1000)}`;
    const headers = { Authorization: `Token ${app.appName}:${PASSWORD}` };
    expect((await post(`${INFLUX_2}?precision=s&org=any&bucket=any`, lines, headers)).status).toBe(204);
    expect(await storedOf(agent.apId, app.token)).toEqual({
      'disk.unit{metric="/ free",service="root"}': ["bytes"],
      'disk.value{metric="/ free",service="root"}': [12345],
    });
  });

  it("may be compressed with gzip", async () => {
    const { apId, token } = await newAgent();
    const headers = { "Content-Encoding": "gzip", ...bearer(token) };
    expect((await post(INFLUX, await gzip("a f=1"), headers)).status).toBe(204);
    const many = Array.from({ length: 3_000 }, (_, i) => `b f${i}=${Math.random()}`);
    const several = await gzip(many.join("\n"));
    // More than one slice.
    expect(several.length).toBeGreaterThan(16 * 1024);
    expect((await post(INFLUX, several, headers)).status).toBe(204);
    const { "a.f": first, ...others } = await storedOf(apId, token);
    expect(first).toEqual([1]);
    expect(
      Object.entries(others)
        .map(([name, [value]]) => `b f${name.slice(3)}=${value}`)
        .toSorted(),
    ).toEqual(many.toSorted());
  });

  it("are rejected as a whole with an unknown precision, too many points or a bomb, and store nothing", async () => {
    const { apId, token } = await newAgent();
    expect((await postLines("a f=1", token, "?precision=fortnight")).status).toBe(400);
    expect((await postLines("a f=1\n".repeat(50_001), token)).status).toBe(413);
    const bomb = await gzip("a f=1\n".repeat(2_000_000));
    expect((await post(INFLUX, bomb, { "Content-Encoding": "gzip", ...bearer(token) })).status).toBe(413);
    expect(await storedOf(apId, token)).toEqual({});
  });
});
