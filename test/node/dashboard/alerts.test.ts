import { describe, expect, it } from "vitest";
import { bySite, countsText, silenceChoices, silenceOf } from "../../../src/dashboard/features/alerts/alert-groups.ts";
import { chartPeriod } from "../../../src/dashboard/features/alerts/chart-period.ts";
import {
  EVENT_SUBJECTS,
  EVENT_TYPES,
  eventDetail,
  eventText,
} from "../../../src/dashboard/features/events/event-text.ts";
import {
  newSubscription,
  subscriptionChange,
  subscriptionIn,
  toSubscriptionDraft,
} from "../../../src/dashboard/features/notifications/subscription-draft.ts";
import {
  backlogText,
  deliveryState,
  filterText,
} from "../../../src/dashboard/features/notifications/subscription-text.ts";
import type { Alert, Silence } from "../../../src/schemas/alerts/alert.ts";
import { EVENT_TYPES as TYPES_OF_SERVICE } from "../../../src/schemas/events.ts";
import type { Subscription } from "../../../src/schemas/subscriptions.ts";

const alertOf = (over: Partial<Alert>): Alert => ({
  id: "1",
  rule_id: "lifi-offline",
  rule: "LiFi: offline",
  severity: "warning",
  state: "firing",
  ap_id: "roof-1",
  group: null,
  labels: {},
  text: "roof-1 is offline",
  value: null,
  fired_at: "2026-01-01T00:00:00.000Z",
  resolved_at: null,
  acknowledged_at: null,
  acknowledged_by: null,
  silenced: false,
  ...over,
});

describe("alerts by site", () => {
  it("start with the most severe alerts, then the newest, and sites without one come last", () => {
    const groups = bySite([
      alertOf({ id: "a", severity: "warning" }),
      alertOf({ id: "b", severity: "warning", labels: { site: "uk" }, fired_at: "2026-01-01T00:00:00.000Z" }),
      alertOf({ id: "c", severity: "warning", labels: { site: "uk" }, fired_at: "2026-01-02T00:00:00.000Z" }),
      alertOf({ id: "d", severity: "critical", labels: { site: "uk" } }),
      alertOf({ id: "e", severity: "warning", labels: { site: "de" } }),
    ]);
    expect(groups.map(({ site }) => site)).toEqual(["uk", "de", null]);
    expect(groups[0]?.alerts.map(({ id }) => id)).toEqual(["d", "c", "b"]);
    expect(groups.map(({ counts }) => countsText(counts))).toEqual(["1 critical, 2 warning", "1 warning", "1 warning"]);
  });
});

describe("a silence of an alert", () => {
  it("is offered for the access point first, then for wider selections", () => {
    const choices = silenceChoices(alertOf({ labels: { site: "uk" } })).map(([selector]) => selector);
    expect(choices).toEqual([
      "ap_id=roof-1,rule_id=lifi-offline",
      "ap_id=roof-1",
      "site=uk,rule_id=lifi-offline",
      "site=uk",
      "rule_id=lifi-offline",
    ]);
    expect(silenceChoices(alertOf({ ap_id: null, labels: {} })).map(([selector]) => selector)).toEqual([
      "rule_id=lifi-offline",
    ]);
  });

  it("leaves out a name that is too long for a selector", () => {
    expect(silenceChoices(alertOf({ ap_id: "a".repeat(64) })).map(([selector]) => selector)).toEqual([
      "rule_id=lifi-offline",
    ]);
  });

  it("is the one that ends last of those that select the alert", () => {
    const silence = (id: string, selector: string, until: string): Silence => ({
      ...{ id, selector, until, reason: "", author: "user:me", created_at: "2026-01-01T00:00:00.000Z" },
    });
    const silences = [
      silence("other", "ap_id=roof-2", "2026-03-01T00:00:00.000Z"),
      silence("group", "@unknown", "2026-03-01T00:00:00.000Z"),
      silence("soon", "ap_id=roof-1", "2026-01-02T00:00:00.000Z"),
      silence("late", "site=uk/*", "2026-02-01T00:00:00.000Z"),
    ];
    expect(silenceOf(alertOf({ labels: { site: "uk/bristol" } }), silences)?.id).toBe("late");
    expect(silenceOf(alertOf({}), silences)?.id).toBe("soon");
    expect(silenceOf(alertOf({ ap_id: "roof-3" }), silences)).toBeUndefined();
  });
});

describe("the chart of an alert", () => {
  const MINUTE_MS = 60_000;
  const now = Date.UTC(2026, 0, 31);

  it("shows the time around the moment when it fired, but not the future", () => {
    expect(chartPeriod(now - 5 * MINUTE_MS, undefined, now)).toEqual({ fromMs: now - 25 * MINUTE_MS, untilMs: now });
    expect(chartPeriod(now - 90 * MINUTE_MS, now - 80 * MINUTE_MS, now)).toEqual({
      fromMs: now - 110 * MINUTE_MS,
      untilMs: now - 60 * MINUTE_MS,
    });
  });

  it("is wider for an alert of long ago, whose points are coarse, and absent before the longest window", () => {
    const day = 1_440 * MINUTE_MS;
    const { fromMs = 0, untilMs = 0 } = chartPeriod(now - 20 * day, now - 20 * day, now) ?? {};
    expect(untilMs - fromMs).toBeGreaterThan(4 * 60 * MINUTE_MS);
    expect(chartPeriod(now - 31 * day, undefined, now)).toBeUndefined();
  });
});

describe("events in words", () => {
  it("cover all types of the service, each with one subject", () => {
    expect(EVENT_TYPES).toEqual([...TYPES_OF_SERVICE]);
    for (const type of EVENT_TYPES) {
      const prefix = type.split(".")[0] ?? "";
      expect(EVENT_SUBJECTS.filter(([, prefixes]) => prefixes.includes(prefix))).toHaveLength(1);
    }
  });

  it("show what happened in one line, also of a type that the page does not know", () => {
    expect(eventText("agent.onboarded")).toBe("First login");
    expect(eventText("constructor")).toBe("constructor");
    const detail = (type: (typeof EVENT_TYPES)[number], data: Record<string, unknown>) => eventDetail({ type, data });
    expect(detail("command.answered", { command: "reboot", outcome: "failed" })).toBe("“reboot”: failed");
    expect(detail("command.issued", { command: null })).toBe("");
    expect(detail("agent.relabelled", { labels: { site: "uk", floor: null } })).toBe("site=uk, floor removed");
    expect(detail("alert.fired", { text: "roof-1 is offline", rule: "offline" })).toBe("roof-1 is offline");
    expect(detail("agent.online", { last_seen: 7 })).toBe("");
  });
});

describe("a subscription", () => {
  const subscription: Subscription = {
    id: "1",
    name: "Night shift",
    owner: "user:me@example.com",
    filter: { types: ["alert.fired"], selector: "site=uk", severity: "warning" },
    target: { kind: "webhook", address: "https://example.com/hook", has_credentials: true },
    created_at: "2026-01-01T00:00:00.000Z",
    cursor: 7,
    backlog: 0,
    delivered_at: null,
    last_error: null,
    failing_since: null,
    next_attempt_at: null,
    stopped_at: null,
  };

  it("keeps the credentials of an address that was not changed", () => {
    const draft = toSubscriptionDraft(subscription);
    expect(subscriptionChange(draft, subscription)).toEqual({ name: "Night shift", filter: subscription.filter });
    expect(subscriptionChange({ ...draft, address: "https://example.com/new" }, subscription).target).toEqual({
      kind: "webhook",
      address: "https://example.com/new",
    });
  });

  it("is about alerts unless the user chooses others, and goes to the user's own address", () => {
    const { filter, target } = subscriptionIn({ ...newSubscription(), name: " mine " });
    expect(filter?.types).toEqual(["alert.fired", "alert.resolved"]);
    expect(target).toEqual({ kind: "email" });
    expect(subscriptionIn({ ...newSubscription(), kind: "mqtt", address: "ignored" }).target).toEqual({ kind: "mqtt" });
  });

  it("is described by its events, its state and what waits", () => {
    expect(filterText(subscription.filter)).toBe("Alert fired · Warning and above · site=uk");
    expect(filterText({ types: [], selector: "", severity: "info" })).toBe("All events");
    expect(deliveryState(subscription)).toBe("new");
    const failing = { ...subscription, failing_since: "2026-01-01T00:00:00.000Z" };
    expect(deliveryState(failing)).toBe("failing");
    expect(deliveryState({ ...failing, stopped_at: "2026-01-02T00:00:00.000Z" })).toBe("stopped");
    expect([0, 1, 2].map(backlogText)).toEqual(["Nothing waits", "1 event waits", "2 events wait"]);
  });
});
