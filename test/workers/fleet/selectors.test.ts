import { describe, expect, it } from "vitest";
import { adminToken, bearer, newAgent, request, send, signedUp, uniqueName } from "../support.ts";
import { itemsOf, newAgents, newSite } from "./requests.ts";

const query = (selector: string): string => `selector=${encodeURIComponent(selector)}`;
const newGroup = async (selector: string): Promise<string> => {
  const name = uniqueName();
  expect((await send("PUT", `/api/v1/groups/${name}`, { selector }, await adminToken())).status).toBe(200);
  return name;
};
const sendCommand = (agents: object, token: string): Promise<Response> =>
  send("POST", "/api/v1/commands", { command: "ping", agents }, token);

/** Reads all messages of a job. */
async function rowsOf(response: Response, token: string): Promise<{ ap_id: string }[]> {
  const { websocket } = (await response.json()) as { websocket: string };
  const { webSocket } = await request(websocket, { headers: { Upgrade: "websocket", ...bearer(token) } });
  const messages: { final: boolean; data: { ap_id: string }[] | object }[] = [];
  webSocket?.accept();
  webSocket?.addEventListener("message", ({ data }) => void messages.push(JSON.parse(String(data))));
  await expect.poll(() => messages.some(({ final }) => final), { timeout: 10_000 }).toBe(true);
  webSocket?.close(1000);
  return messages.flatMap(({ data }) => (Array.isArray(data) ? data : []));
}

/** The operations that take a selector: each returns the names of the selected agents. */
const OPERATIONS: [string, (selector: string, token: string) => Promise<Response>, (string | number)[]][] = [
  ["GET agents", (s, token) => send("GET", `/api/v1/agents/?${query(s)}`, undefined, token), ["query", "selector"]],
  ["GET overview", (s, token) => send("GET", `/api/v1/overview?${query(s)}`, undefined, token), ["query", "selector"]],
  ["GET labels", (s, token) => send("GET", `/api/v1/labels?${query(s)}`, undefined, token), ["query", "selector"]],
  [
    "GET labels/export",
    (s, token) => send("GET", `/api/v1/labels/export?${query(s)}`, undefined, token),
    ["query", "selector"],
  ],
  [
    "request_all_agents_details",
    (s, token) => send("POST", `/api/v1/agent_details/request_all_agents_details?${query(s)}`, undefined, token),
    ["query", "selector"],
  ],
  ["POST commands", (selector, token) => sendCommand({ selector }, token), ["body", "agents", "selector"]],
];

describe("a selector", () => {
  it("filters the list of agents and the overview, also in pages and with groups", async () => {
    const site = newSite();
    const names = await newAgents({ site: `${site}/a` }, { site: `${site}/b` }, { site: `${site}/c`, retired: "1" });
    const expected = names.slice(0, 2).toSorted();
    const group = await newGroup(`site=${site}/*`);
    for (const selector of [`site=${site}/*,!retired`, `@${group},!retired`]) {
      const listed = await send("GET", `/api/v1/agents/?${query(selector)}`, undefined, await adminToken());
      expect(((await listed.json()) as { ap_id: string }[]).map(({ ap_id }) => ap_id)).toEqual(expected);
      const path = `/api/v1/overview?limit=1&offset=1&${query(selector)}`;
      const token = await adminToken();
      const overview = () => send("GET", path, undefined, token);
      // The overview may be a few seconds old.
      await expect
        .poll(async () => ((await (await overview()).json()) as { access_points: unknown[] }).access_points, {
          timeout: 8_000,
          interval: 500,
        })
        .toMatchObject([{ ap_id: expected[1], site: expect.stringContaining(site) }]);
    }
  });

  it("selects the agents of request_all_agents_details", async () => {
    const site = newSite();
    const [apId = ""] = await newAgents({ site, floor: "1" }, { site, floor: "2" });
    const { token } = await signedUp();
    const path = `/api/v1/agent_details/request_all_agents_details?${query(`site=${site},floor=1`)}`;
    const rows = await rowsOf(await send("POST", path, undefined, token), token);
    expect(rows.map(({ ap_id }) => ap_id)).toEqual([apId]);
  });

  it("selects the targets of a command, alone and together with names", async () => {
    const site = newSite();
    const [a = "", b = ""] = await newAgents({ site, floor: "1" }, { site, floor: "2" });
    const { apId: elsewhere } = await newAgent();
    const { token } = await signedUp();
    const outcome = async (agents: object) => {
      const { jobs, refused } = (await (await sendCommand(agents, token)).json()) as {
        jobs: { ap_id: string }[];
        refused: unknown[];
      };
      return { jobs: jobs.map(({ ap_id }) => ap_id), refused };
    };
    expect(await outcome({ selector: `site=${site},floor=1` })).toEqual({ jobs: [a], refused: [] });
    const absent = uniqueName();
    expect(await outcome({ ap_ids: [b, elsewhere, absent], selector: `site=${site}` })).toEqual({
      jobs: [b],
      refused: [{ ap_id: absent, detail: "Agent not found" }],
    });
  });

  it("does not extend what the caller sees", async () => {
    const site = newSite();
    const [apId = ""] = await newAgents({ site, floor: "1" }, { site, floor: "2" });
    const { token } = await signedUp([{ role: "viewer", selector: `site=${site},floor=1` }]);
    const listed = await send("GET", `/api/v1/agents/?${query(`site=${site}`)}`, undefined, token);
    expect(((await listed.json()) as { ap_id: string }[]).map(({ ap_id }) => ap_id)).toEqual([apId]);
  });

  it.each(OPERATIONS)("with a syntax error is rejected with its position by %s", async (_, call, loc) => {
    expect(await itemsOf(await call("site=a,floor in (1", await adminToken()))).toEqual([
      { loc, msg: "Value error, `,` or `)` expected at position 18", type: "selector_syntax" },
    ]);
  });

  it.each(OPERATIONS)("with an unknown or invisible group is rejected by %s", async (_, call, loc) => {
    const hidden = await newGroup("site=a");
    const { token } = await signedUp([{ role: "operator", selector: "site=b" }]);
    const msg = "Value error, the selector refers to a group that does not exist";
    const expected = [{ loc, msg, type: "unknown_group" }];
    expect(await itemsOf(await call(`@${uniqueName()}`, await adminToken()))).toEqual(expected);
    expect(await itemsOf(await call(`@${uniqueName()}`, token))).toEqual(expected);
    expect(await itemsOf(await call(`@${hidden}`, token))).toEqual(expected);
  });

  it("can refer to at most four groups", async () => {
    const path = `/api/v1/agents/?${query("@a,@b,@c,@d,@e")}`;
    expect(await itemsOf(await send("GET", path, undefined, await adminToken()))).toMatchObject([
      { msg: "Value error, At most 4 groups expected at position 12" },
    ]);
  });
});
