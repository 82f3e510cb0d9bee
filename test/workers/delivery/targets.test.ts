import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { subscriptions } from "../../../src/events/event-tables.ts";
import { addEvents, clean, database, newUser, rowOf, subscribe, World } from "./delivery-support.ts";

let world: World;
beforeEach(async () => {
  await clean();
  world = new World();
});
afterAll(clean);

describe("an e-mail subscription", () => {
  it("sends a burst as one message of at most 50 lines", async () => {
    const owner = await newUser();
    await subscribe(owner, owner.name, {}, "email");
    await addEvents({ data: { text: "first\r\nBcc: x" } });
    await world.step();
    await addEvents(...Array.from({ length: 79 }, (_, i) => ({ apId: `ap-${i}` })));
    await world.step(10 * 1_000);
    expect(world.mails).toEqual([]);
    await world.step(11 * 1_000);
    await world.step(60 * 1_000);
    expect(world.mails).toMatchObject([{ to: owner.name, subject: "80 events: Test" }]);
    const { text = "" } = world.mails[0] ?? {};
    expect(text.split("\n\n")[0]?.split("\n").length).toBe(51);
    expect(text).toContain("first Bcc: x");
    expect(text).toContain("… and 30 more");
  });
});

describe("an Alertmanager", () => {
  it("gets alerts and their ends, with equal labels, and no other events", async () => {
    await subscribe(await newUser(), "https://am.test/prefix/", {}, "alertmanager");
    const receiver = world.receiver("am.test");
    const labels = { "site/floor": "3", technology: "WiFi" };
    const data = {
      rule: "High load",
      labels: { team: "radio" },
      text: "Load is 97",
      value: 97,
      fired_at: "2026-01-01T00:00:00.000Z",
    };
    const alert = { severity: "critical", labels, data, at: new Date("2026-01-01T01:00:00Z") } as const;
    await addEvents({}, { type: "alert.fired", ...alert }, { type: "alert.resolved", ...alert });
    await world.step();
    expect(receiver.requests.map((request) => request.url)).toEqual(
      Array(2).fill("https://am.test/prefix/api/v2/alerts"),
    );
    const [[fired], [resolved]] = receiver.requests.map(({ text }) => JSON.parse(text)) as [object[], object[]];
    const common = {
      labels: {
        site_floor: "3",
        technology: "WiFi",
        team: "radio",
        ap_id: "ap-1",
        alertname: "High load",
        severity: "critical",
      },
      annotations: { summary: "Load is 97", value: "97" },
      startsAt: "2026-01-01T00:00:00.000Z",
    };
    expect(fired).toEqual({ ...common, endsAt: "2026-01-31T00:00:00.000Z" });
    expect(resolved).toEqual({ ...common, endsAt: "2026-01-01T01:00:00.000Z" });
  });
});

describe("deliveries to 1,000 subscriptions", () => {
  it("read the log once, and reach all of them", async () => {
    const owner = await newUser();
    const { id } = await subscribe(owner, "https://good.test/hook");
    const row = await rowOf(id);
    if (row === undefined) throw new Error("no row");
    const others = Array.from({ length: 999 }, () => ({
      ...row,
      id: crypto.randomUUID(),
      kind: "alertmanager" as const,
      sealedSecret: null,
    }));
    for (let i = 0; i < others.length; i += 333) await database.insert(subscriptions).values(others.slice(i, i + 333));
    await addEvents({ type: "alert.fired", data: { rule: "r" } });
    const receiver = world.receiver("good.test");
    receiver.respond = () => new Response();
    await world.step();
    expect(receiver.requests.length).toBe(1_000);
  });
});
