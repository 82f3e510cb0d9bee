import { and, asc, eq, like } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { createGroupStore } from "../../../src/accounts/group-store.ts";
import { createSilenceReader } from "../../../src/alerts/active-silences.ts";
import { alertMembers, alerts } from "../../../src/alerts/alert-tables.ts";
import { createEventSink, type EventSink } from "../../../src/alerts/event-sink.ts";
import type { AlertChange, MemberChange, OutgoingEvent, ShardEvent } from "../../../src/alerts/shard-events.ts";
import { createSilenceStore } from "../../../src/alerts/silence-store.ts";
import { events } from "../../../src/events/event-tables.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { Uploader } from "../../../src/telemetry/shard/alerting/uploader.ts";
import { newAgent, signedUp, uniqueName } from "../support.ts";
import { type EngineTest, withEngine } from "../telemetry/engine-support.ts";
import { createSilence, database, eventsOf, eventsOfAlert } from "./requests.ts";

const groups = createGroupStore(database);
const sinkAt = (now?: () => number) =>
  createEventSink(database, createSilenceReader(database, createSilenceStore(database), groups), now);
const sink = sinkAt();

const RULE = { id: "rule", name: "Rule", severity: "warning", labels: {} } as const;
const changeOf = (apId: string, isFiring: boolean, changes: Partial<AlertChange> = {}): AlertChange => ({
  kind: "alert",
  isFiring,
  atMs: Date.now(),
  alertId: uniqueName(),
  firedMs: Date.now(),
  rule: RULE,
  apId,
  ownerId: null,
  labels: {},
  text: "text",
  value: 1,
  reason: isFiring ? null : "condition",
  ...changes,
});
const presenceOf = (apId: string, isOnline: boolean): ShardEvent => ({
  kind: "presence",
  isOnline,
  atMs: Date.now(),
  apId,
  lastSeenMs: Date.now(),
});
const outgoing = (...list: ShardEvent[]): OutgoingEvent[] => {
  const shard = uniqueName();
  return list.map((event, i) => ({ source: `${shard}/${i}`, event }));
};

/** Uploads what the engine has left, as a shard does after a start. */
const upload = async (test: EngineTest, target: EventSink): Promise<void> => {
  const uploader = new Uploader({
    store: test.store,
    sink: target,
    name: uniqueName(),
    sync: async () => {},
    onUploaded: async () => {},
    now: Date.now,
  });
  uploader.start();
  await expect.poll(() => test.store.outgoingCount, { timeout: 5_000 }).toBe(0);
};

describe("the event sink", () => {
  it("writes events in their order, with the labels that the agent has, and once if they are sent again", async () => {
    const { apId } = await newAgent({}, { site: "s" });
    const fired = changeOf(apId, true, { labels: { site: "s" } });
    const resolved = { ...fired, isFiring: false, reason: "condition" as const };
    const list = outgoing(presenceOf(apId, true), fired, resolved, presenceOf(apId, false));
    await sink.upload(list);
    await sink.upload(list);
    expect(await eventsOf(apId)).toEqual(["agent.online", "alert.fired", "alert.resolved", "agent.offline"]);
    const [online] = await database.select().from(events).where(eq(events.apId, apId)).limit(1).offset(0);
    expect(online?.labels).toMatchObject({ site: "s", emulated: "false" });
    const [alert] = await database.select().from(alerts).where(eq(alerts.id, fired.alertId));
    expect(alert).toMatchObject({ apId, isSilenced: false, resolvedAt: new Date(resolved.atMs) });
  });

  it("gives the end of an alert the labels and the severity of its beginning", async () => {
    const { apId } = await newAgent({}, { site: "s" });
    const fired = changeOf(apId, true, { labels: { site: "s" } });
    const rule = { ...RULE, severity: "critical" } as const;
    const resolved = { ...fired, rule, isFiring: false, labels: { site: "elsewhere" }, reason: "condition" as const };
    await sink.upload(outgoing(fired));
    await sink.upload(outgoing(resolved));
    const rows = await database
      .select()
      .from(events)
      .where(and(eq(events.apId, apId), like(events.type, "alert.%")))
      .orderBy(asc(events.id));
    expect(rows.map(({ type, severity, labels }) => ({ type, severity, labels }))).toEqual([
      { type: "alert.fired", severity: "warning", labels: { site: "s" } },
      { type: "alert.resolved", severity: "warning", labels: { site: "s" } },
    ]);
  });

  it("writes nothing about the presence of an agent that was deleted", async () => {
    const apId = uniqueName();
    await sink.upload(outgoing(presenceOf(apId, false)));
    expect(await eventsOf(apId)).toEqual([]);
  });

  it("silences only agents that the author of the silence may operate", async () => {
    const site = uniqueName();
    const operator = await signedUp([{ role: "operator", selector: `site=${site}/a` }]);
    await createSilence("", operator.token);
    const inside = changeOf(uniqueName(), true, { labels: { site: `${site}/a` } });
    const outside = changeOf(uniqueName(), true, { labels: { site: `${site}/b` } });
    expect(await sink.upload(outgoing(inside, outside))).toBeGreaterThan(Date.now());
    expect(await eventsOfAlert(inside.alertId)).toEqual([]);
    expect(await eventsOfAlert(outside.alertId)).toEqual(["alert.fired"]);
  });

  it("silences one agent, or one rule, by a selector of their ids", async () => {
    const [one, other, ruleId] = [uniqueName(), uniqueName(), uniqueName()];
    await createSilence(`ap_id=${one}`);
    await createSilence(`rule_id=${ruleId}`);
    // A label of the agent with such a name does not count.
    const fired = [
      changeOf(one, true),
      changeOf(other, true, { labels: { ap_id: one } }),
      changeOf(other, true, { rule: { ...RULE, id: ruleId } }),
    ];
    await sink.upload(outgoing(...fired));
    const rows = await Promise.all(
      fired.map(({ alertId }) => database.select().from(alerts).where(eq(alerts.id, alertId))),
    );
    expect(rows.flat().map(({ isSilenced }) => isSilenced)).toEqual([true, false, true]);
  });

  it("writes the event of an alert that still fires when its silence ends, and none of one that has ended", async () => {
    const team = uniqueName();
    await createSilence(`team=${team}`);
    const rule = { ...RULE, labels: { team } };
    const [lasting, ended] = [changeOf(uniqueName(), true, { rule }), changeOf(uniqueName(), true, { rule })];
    await sink.upload(outgoing(lasting, ended, { ...ended, isFiring: false }));
    await sink.release();
    expect(await eventsOfAlert(lasting.alertId)).toEqual([]);
    const later = sinkAt(() => Date.now() + 120_000);
    await Promise.all([later.release(), later.release()]);
    await later.release();
    expect(await eventsOfAlert(lasting.alertId)).toEqual(["alert.fired"]);
    expect(await eventsOfAlert(ended.alertId)).toEqual([]);
    await sink.upload(outgoing({ ...lasting, isFiring: false }));
    expect(await eventsOfAlert(lasting.alertId)).toEqual(["alert.fired", "alert.resolved"]);
  });

  it("fires one alert for a group when the share of its agents is reached, and ends it below", async () => {
    const site = uniqueName();
    const agents = await Promise.all(Array.from({ length: 4 }, async () => (await newAgent({}, { site })).apId));
    const rule = { ...RULE, id: uniqueName(), text: "{{value}} % of {{group}}", condition: { no_report_s: 60 } };
    const member = (apId: string, isFiring: boolean): MemberChange => ({
      kind: "member",
      isFiring,
      atMs: Date.now(),
      rule,
      selector: [],
      by: "site",
      percent: 75,
      groupValue: site,
      apId,
    });
    const [a = "", b = "", c = "", d = ""] = agents;
    const alertsOf = async () => await database.select().from(alerts).where(eq(alerts.ruleId, rule.id));
    await sink.upload(outgoing(member(a, true), member(b, true)));
    expect(await alertsOf()).toEqual([]);
    // Two shards at once, and one of them again.
    const list = outgoing(member(d, true));
    await Promise.all([sink.upload(outgoing(member(c, true))), sink.upload(list)]);
    await sink.upload(list);
    const [alert, ...others] = await alertsOf();
    expect([alert?.groupValue, alert?.apId, alert?.labels, others]).toEqual([site, null, { site }, []]);
    await sink.upload(outgoing(member(a, false)));
    expect((await alertsOf())[0]?.resolvedAt).toBeNull();
    await sink.upload(outgoing(member(b, false), member(c, false)));
    expect((await alertsOf())[0]?.resolvedAt).not.toBeNull();
    expect(await eventsOfAlert(alert?.id ?? "")).toEqual(["alert.fired", "alert.resolved"]);
    expect(await database.select().from(alertMembers).where(eq(alertMembers.ruleId, rule.id))).toHaveLength(1);
  });
});

describe("a shard that is killed", () => {
  it("uploads after its start what it committed and did not upload", () =>
    withEngine(async (test) => {
      const { apId } = await newAgent();
      test.store.addOutgoing(presenceOf(apId, true));
      test.restart();
      await upload(test, sink);
      expect(await eventsOf(apId)).toEqual(["agent.online"]);
    }));

  it("leaves one event if it does not learn that libSQL has it", () =>
    withEngine(async (test) => {
      const { apId } = await newAgent();
      test.store.addOutgoing(presenceOf(apId, true));
      test.store.addOutgoing(changeOf(apId, true));
      let attempts = 0;
      const unsure: EventSink = {
        ...sink,
        upload: async (list) => {
          await sink.upload(list);
          if (attempts++ < 2) throw new Unavailable("libSQL", new Error("no response"));
          return undefined;
        },
      };
      await upload(test, unsure);
      expect(attempts).toBe(3);
      expect(await eventsOf(apId)).toEqual(["agent.online", "alert.fired"]);
    }));

  it("is not held up by an event that libSQL rejects", () =>
    withEngine(async (test) => {
      const { apId } = await newAgent();
      test.store.addOutgoing(presenceOf(apId, true));
      test.store.addOutgoing(changeOf(apId, true, { text: null as unknown as string }));
      test.store.addOutgoing(presenceOf(apId, false));
      await upload(test, sink);
      expect(await eventsOf(apId)).toEqual(["agent.online", "agent.offline"]);
    }));
});
