import { describe, expect, it } from "vitest";
import { adminToken, bearer, request, send, signedUp, uniqueName } from "../support.ts";
import { itemsOf, labelsOf, newAgents, newManager, newSite, postCsv } from "./requests.ts";

const exportOf = async (selector: string, token: string): Promise<string> => {
  const path = `/api/v1/labels/export?selector=${encodeURIComponent(selector)}`;
  const response = await request(path, { headers: bearer(token) });
  expect(response.status).toBe(200);
  expect(response.headers.get("Content-Type")).toBe("text/csv; charset=utf-8");
  return await response.text();
};
const file = (...lines: string[]): string => lines.map((line) => `${line}\r\n`).join("");

describe("the export", () => {
  it("has the labels that callers have set, and an empty cell for each absent label", async () => {
    const site = newSite();
    const names = await newAgents({ site, floor: "1" }, { site, zone: "z" });
    const lines = names.map((apId, i) => (i === 0 ? `${apId},1,${site},` : `${apId},,${site},z`)).toSorted();
    expect(await exportOf(`site=${site}`, await adminToken())).toBe(file("ap_id,floor,site,zone", ...lines));
  });

  it("has only agents that the caller sees, and no columns of others", async () => {
    const site = newSite();
    const [apId = ""] = await newAgents({ site, floor: "1" }, { site, secret: "x" });
    const { token } = await signedUp([{ role: "viewer", selector: `site=${site},floor` }]);
    expect(await exportOf("", token)).toBe(file("ap_id,floor,site", `${apId},1,${site}`));
    expect(await exportOf("", (await signedUp([])).token)).toBe(file("ap_id"));
  });
});

describe("the import", () => {
  it("sets labels, removes those with an empty cell, and keeps those without a column", async () => {
    const [a = "", b = ""] = await newAgents({ floor: "1", zone: "z" }, { old: "x" });
    const text = `\ufeffap_id,floor,old\n"${a}","2",\r\n\n${b},,""`;
    const dry = await postCsv(text, await adminToken(), "?dry_run=true");
    expect(await dry.json()).toEqual({ status: "success", agents: 2, changed: 2, dry_run: true });
    expect(await labelsOf(b)).toEqual({ old: "x" });
    const response = await postCsv(text, await adminToken());
    expect(await response.json()).toEqual({ status: "success", agents: 2, changed: 2, dry_run: false });
    expect([await labelsOf(a), await labelsOf(b)]).toEqual([{ floor: "2", zone: "z" }, {}]);
  });

  it("changes nothing with the file of an export", async () => {
    const site = newSite();
    await newAgents({ site, floor: "1" }, { site, zone: "z" }, { site });
    const response = await postCsv(await exportOf(`site=${site}`, await adminToken()), await adminToken());
    expect(await response.json()).toEqual({ status: "success", agents: 3, changed: 0, dry_run: false });
  });

  it("reports each invalid line with its number and then changes nothing", async () => {
    const [a = "", b = ""] = await newAgents({}, {});
    const absent = uniqueName();
    const lines = ["ap_id,floor", `${a},1`, `${b},a b`, `${absent},1`, `${a},2`, `${b}`, `${b},"1"x`, ""];
    const items = await itemsOf(await postCsv(file(...lines), await adminToken()));
    expect(items.map(({ loc, msg }) => [...loc, msg.replace(/^Value error, line \d+: /, "")])).toEqual([
      ["body", "line", 3, expect.stringContaining("column 2: String should match pattern")],
      ["body", "line", 4, "Agent not found"],
      ["body", "line", 5, "the agent is on line 2 already"],
      ["body", "line", 6, "2 cells expected, 1 found"],
      ["body", "line", 7, "a cell with a quote must be in quotes as a whole"],
    ]);
    expect(await labelsOf(a)).toEqual({});
  });

  it.each([
    ["name,floor\n", "the first line must be `ap_id` and the keys of labels"],
    ["\n\n", "the first line must be `ap_id` and the keys of labels"],
    ["ap_id,floor,floor\n", "column 3: the same label as an earlier column"],
    ["ap_id,technology\n", "column 2: Value error, only the service sets this label"],
    ["ap_id,a b\n", "column 2: String should match pattern"],
    ['ap_id,"a\n', "a quoted cell has no closing quote"],
  ])("rejects the header %j", async (text, reason) => {
    const [item] = await itemsOf(await postCsv(text, await adminToken()));
    expect(item).toMatchObject({ loc: ["body", "line", 1], msg: expect.stringContaining(reason) });
  });

  it("rejects agents outside a manager's grants, and agents that would leave them", async () => {
    const site = newSite();
    const [inside = "", other = "", seen = "", hidden = ""] = await newAgents(
      { site },
      { site },
      { site: `${site}-2` },
      { site: "x" },
    );
    const token = await newManager(`site=${site}`, { role: "viewer", selector: `site=${site}-2` });
    const lines = [
      `${inside},${site},1`,
      `${other},,1`,
      `${seen},${site},1`,
      `${hidden},${site},1`,
      `absent,${site},1`,
    ];
    const items = await itemsOf(await postCsv(file("ap_id,site,floor", ...lines), token));
    expect(items.map(({ msg }) => msg)).toEqual([
      "Value error, line 3: Your grants do not include an agent with these labels",
      "Value error, line 4: Not enough permissions",
      "Value error, line 5: Agent not found",
      "Value error, line 6: Agent not found",
    ]);
    expect(await labelsOf(inside)).toEqual({ site });
    const allowed = await postCsv(file("ap_id,floor", `${inside},1`, `${other},2`), token);
    expect(await allowed.json()).toMatchObject({ agents: 2, changed: 2 });
  });

  it("rejects other content types, other encodings and large bodies", async () => {
    const token = await adminToken();
    expect(await itemsOf(await postCsv("ap_id\n", token, "", "application/json"))).toMatchObject([
      { loc: ["header", "Content-Type"] },
    ]);
    expect((await postCsv("ap_id\n".repeat(200_000), token)).status).toBe(413);
    const send = (body: BodyInit) =>
      request("/api/v1/labels/import", {
        method: "POST",
        headers: { "Content-Type": "text/csv", ...bearer(token) },
        body,
      });
    expect((await send(new Uint8Array([0x61, 0xff]))).status).toBe(400);
    expect(await itemsOf(await send(new Uint8Array()))).toMatchObject([{ loc: ["body"], type: "missing" }]);
    expect(await itemsOf(await postCsv("ap_id\n", token, "?dry_run=maybe"))).toMatchObject([
      { loc: ["query", "dry_run"], type: "bool_parsing" },
    ]);
  });

  it("rejects a file with more than 20,000 agents", async () => {
    const lines = Array.from({ length: 20_001 }, (_, i) => `agent-${i}`);
    const items = await itemsOf(await postCsv(file("ap_id", ...lines), await adminToken()));
    expect(items).toMatchObject([
      { loc: ["body", "line", 20_002], msg: expect.stringContaining("at most 20,000 agents") },
    ]);
  });

  it("is audited once for all agents", async () => {
    const [a = "", b = ""] = await newAgents({}, {});
    const column = `c${crypto.randomUUID()}`;
    await postCsv(file(`ap_id,${column}`, `${a},1`, `${b},2`), await adminToken());
    const response = await send("GET", "/api/v1/audit/?object=agents&limit=20", undefined, await adminToken());
    const entries = (await response.json()) as { action: string; detail: { columns?: string[] } | null }[];
    const ofImport = entries.filter(({ detail }) => detail?.columns?.includes(column));
    expect(ofImport).toMatchObject([{ action: "label", detail: { columns: [column], agents: 2 } }]);
  });
});
