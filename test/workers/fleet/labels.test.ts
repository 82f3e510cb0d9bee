import { describe, expect, it } from "vitest";
import { adminToken, newAgent, newApp, send, signedUp, uniqueName } from "../support.ts";
import { itemsOf, labelsOf, newAgents, newManager, newSite, postLabels, putLabels } from "./requests.ts";

interface AuditEntry {
  action: string;
  object: string;
  request_id: string;
  detail: Record<string, unknown> | null;
}

/** Returns the entries of an object, newest first. */
const auditOf = async (object: string): Promise<AuditEntry[]> => {
  const response = await send("GET", `/api/v1/audit/?object=${object}&limit=20`, undefined, await adminToken());
  return (await response.json()) as AuditEntry[];
};

describe("PUT agents/{ap_id}/labels", () => {
  it("merges the labels, removes those that are null, and returns all", async () => {
    const { apId } = await newAgent({ access_point_type: "LiFi" }, { floor: "1", old: "x" });
    const response = await putLabels(apId, { site: "uk/bristol/library", old: null, absent: null }, await adminToken());
    expect(response.status).toBe(200);
    const labels = { floor: "1", site: "uk/bristol/library", emulated: "false", technology: "LiFi" };
    expect(await response.json()).toEqual({ ap_id: apId, labels });
    const [entry] = await auditOf(`agent:${apId}`);
    expect(entry).toMatchObject({ action: "label", detail: { labels: { site: "uk/bristol/library", old: null } } });
  });

  it("writes no audit entry if nothing changes", async () => {
    const { apId } = await newAgent({}, { floor: "1" });
    expect((await putLabels(apId, { floor: "1", absent: null }, await adminToken())).status).toBe(200);
    expect((await auditOf(`agent:${apId}`)).map(({ action }) => action)).toEqual(["create"]);
  });

  it.each([
    [{ technology: "WiFi" }, ["body", "technology"], "only the service sets this label"],
    [{ "-x": "1" }, ["body", "-x"], "String should match pattern"],
    [{ x: "a b" }, ["body", "x"], "String should match pattern"],
    [{ x: "" }, ["body", "x"], "String should match pattern"],
    [{ x: "1".repeat(64) }, ["body", "x"], "at most 63 characters"],
    [{ x: 1 }, ["body", "x"], "valid string"],
  ])("rejects %o with 422", async (changes, loc, msg) => {
    const { apId } = await newAgent();
    expect(await itemsOf(await putLabels(apId, changes, await adminToken()))).toMatchObject([
      { loc, msg: expect.stringContaining(msg) },
    ]);
  });

  it("rejects more than 64 labels after the merge", async () => {
    const many = (count: number, prefix: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, "1"]));
    const { apId } = await newAgent({}, many(60, "a"));
    expect(await itemsOf(await putLabels(apId, many(5, "b"), await adminToken()))).toMatchObject([{ loc: ["body"] }]);
    expect((await putLabels(apId, { ...many(5, "b"), a0: null }, await adminToken())).status).toBe(200);
    expect(Object.keys(await labelsOf(apId))).toHaveLength(64);
  });

  it("keeps all of many concurrent changes", async () => {
    const { apId } = await newAgent();
    const keys = Array.from({ length: 20 }, (_, i) => `key${i}`);
    const token = await adminToken();
    const responses = await Promise.all(keys.map((key) => putLabels(apId, { [key]: "1" }, token)));
    expect(responses.map(({ status }) => status)).toEqual(keys.map(() => 200));
    expect(Object.keys(await labelsOf(apId)).toSorted()).toEqual(keys.toSorted());
  });
});

describe("a manager", () => {
  it("labels agents in its selector, and cannot move them out or in", async () => {
    const site = newSite();
    const [inside = "", seen = "", hidden = ""] = await newAgents({ site }, { site: `${site}-2` }, { site: "x" });
    const token = await newManager(`site=${site}`, { role: "viewer", selector: `site=${site}-2` });
    expect((await putLabels(inside, { floor: "2" }, token)).status).toBe(200);
    const out = await putLabels(inside, { site: null }, token);
    expect(out.status).toBe(403);
    expect(await out.json()).toEqual({ detail: "Your grants do not include an agent with these labels" });
    expect((await putLabels(seen, { site }, token)).status).toBe(403);
    const [unseen, absent] = [await putLabels(hidden, { site }, token), await putLabels(uniqueName(), { site }, token)];
    expect([unseen.status, absent.status]).toEqual([404, 404]);
    expect(await unseen.text()).toBe(await absent.text());
    expect([await labelsOf(inside), await labelsOf(seen)]).toEqual([{ site, floor: "2" }, { site: `${site}-2` }]);
  });

  it("cannot move an agent out with two concurrent changes that are each allowed", async () => {
    const site = newSite();
    const [apId = ""] = await newAgents({ site, floor: "1", room: "1" });
    // The agent stays inside if one of the two labels stays.
    const token = await newManager(`site=${site},floor=1`, { role: "manager", selector: `site=${site},room=1` });
    for (let run = 0; run < 5; run++) {
      await putLabels(apId, { floor: "1", room: "1" }, await adminToken());
      const changes = [{ floor: null }, { room: null }];
      const statuses = (await Promise.all(changes.map((change) => putLabels(apId, change, token)))).map(
        (r) => r.status,
      );
      expect(statuses.toSorted()).toEqual([200, 403]);
    }
  });

  it("changes many agents only if all of them stay in its selector", async () => {
    const site = newSite();
    const [a = "", b = ""] = await newAgents({ site }, { site, floor: "1" }, { site: `${site}/other` });
    const token = await newManager(`site=${site}`, { role: "viewer", selector: `site=${site}/*` });
    const selected = await postLabels({ selector: `site=${site}`, labels: { floor: "1" } }, token);
    expect(await selected.json()).toEqual({ status: "success", agents: 2, changed: 1, dry_run: false });
    expect((await postLabels({ selector: `site=${site}`, labels: { site: "y" } }, token)).status).toBe(403);
    const outside = await postLabels({ selector: `site in (${site},${site}/other)`, labels: { floor: "3" } }, token);
    expect(outside.status).toBe(403);
    expect(await outside.json()).toEqual({ detail: "Not enough permissions for 1 of the 3 selected agents" });
    expect([await labelsOf(a), await labelsOf(b)]).toEqual([
      { site, floor: "1" },
      { site, floor: "1" },
    ]);
  });
});

describe("POST labels", () => {
  it("changes the agents of a selector with one audit entry, and none in a dry run", async () => {
    const site = newSite();
    const [a = "", b = "", c = ""] = await newAgents({ site }, { site, floor: "2" }, { site, retired: "yes" });
    const body = { selector: `site=${site},!retired`, labels: { floor: "2", zone: "z" } };
    const dry = await postLabels({ ...body, dry_run: true }, await adminToken());
    expect(await dry.json()).toEqual({ status: "success", agents: 2, changed: 2, dry_run: true });
    expect(await labelsOf(a)).toEqual({ site });
    const response = await postLabels(body, await adminToken());
    expect(await response.json()).toEqual({ status: "success", agents: 2, changed: 2, dry_run: false });
    expect(await Promise.all([a, b, c].map(labelsOf))).toEqual([
      { site, floor: "2", zone: "z" },
      { site, floor: "2", zone: "z" },
      { site, retired: "yes" },
    ]);
    const entries = (await auditOf("agents")).filter(({ detail }) => detail?.selector === body.selector);
    expect(entries).toMatchObject([{ action: "label", detail: { ...body, agents: 2 } }]);
    const again = await postLabels(body, await adminToken());
    expect(await again.json()).toEqual({ status: "success", agents: 2, changed: 0, dry_run: false });
  });

  it("can change the label that selects", async () => {
    const [from, to] = [newSite(), newSite()];
    const [a = "", b = ""] = await newAgents({ site: from }, { site: from });
    const response = await postLabels({ selector: `site=${from}`, labels: { site: to } }, await adminToken());
    expect(await response.json()).toMatchObject({ agents: 2, changed: 2 });
    expect([await labelsOf(a), await labelsOf(b)]).toEqual([{ site: to }, { site: to }]);
  });

  it("rejects labels of the service, and agents with too many labels", async () => {
    const site = newSite();
    const full = Object.fromEntries(Array.from({ length: 63 }, (_, i) => [`k${i}`, "1"]));
    const [, apId = ""] = await newAgents({ site }, { site, ...full });
    const own = await postLabels({ selector: `site=${site}`, labels: { owner: "x" } }, await adminToken());
    expect(await itemsOf(own)).toMatchObject([{ loc: ["body", "labels", "owner"] }]);
    const response = await postLabels({ selector: `site=${site}`, labels: { floor: "1" } }, await adminToken());
    expect(await itemsOf(response)).toMatchObject([
      { loc: ["body", "labels"], msg: expect.stringContaining("1 of the selected agents would have more") },
    ]);
    expect(await labelsOf(apId)).not.toHaveProperty("floor");
  });
});

describe("GET labels", () => {
  interface Summary {
    key: string;
    agents: number;
    values: { value: string; agents: number }[];
  }
  const list = async (query: string, token: string): Promise<Summary[]> =>
    (await (await send("GET", `/api/v1/labels?${query}`, undefined, token)).json()) as Summary[];

  it("counts the agents of each key and value, the most frequent values first", async () => {
    const site = newSite();
    await newAgents({ site, floor: "2" }, { site, floor: "1" }, { site, floor: "1" }, { site, floor: "3" }, { site });
    const selector = encodeURIComponent(`site=${site}`);
    expect(await list(`selector=${selector}`, await adminToken())).toEqual([
      { key: "emulated", agents: 5, values: [{ value: "false", agents: 5 }] },
      {
        key: "floor",
        agents: 4,
        values: [
          { value: "1", agents: 2 },
          { value: "2", agents: 1 },
          { value: "3", agents: 1 },
        ],
      },
      { key: "site", agents: 5, values: [{ value: site, agents: 5 }] },
    ]);
    const [, floor] = await list(`selector=${selector}&limit=1`, await adminToken());
    expect(floor).toEqual({ key: "floor", agents: 4, values: [{ value: "1", agents: 2 }] });
  });

  it("counts only agents that the caller sees", async () => {
    const site = newSite();
    const [apId = ""] = await newAgents({ site, floor: "1" }, { site, floor: "2", secret: "x" });
    const viewer = await signedUp([{ role: "viewer", selector: `site=${site},floor=1` }]);
    const app = await newApp({ ap_ids: [apId] });
    for (const { token } of [viewer, app]) {
      const summaries = await list("", token);
      expect(summaries.map(({ key, agents }) => [key, agents])).toEqual([
        ["emulated", 1],
        ["floor", 1],
        ["site", 1],
      ]);
    }
    expect(await list("", (await signedUp([])).token)).toEqual([]);
  });
});
