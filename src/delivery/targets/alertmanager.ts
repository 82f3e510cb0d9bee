import * as z from "zod";
import type { NetworkEvent } from "../../schemas/events.ts";
import type { Post } from "./http-post.ts";
import type { Target } from "./target.ts";

/** Alerts for the API of Prometheus' Alertmanager. */

/** Alertmanager ends an alert without an end after five minutes, unless it gets it again. We send each alert once, and its end. */
const LONGEST_MS = 30 * 86_400_000;

export function createAlertmanagerTarget(post: Post): Target {
  return {
    accepts: (type) => type === "alert.fired" || type === "alert.resolved",

    async send({ address, credentials }, [{ event }], signal) {
      const url = new URL(address);
      url.pathname = `${url.pathname.replace(/\/+$/, "")}/api/v2/alerts`;
      const body = JSON.stringify([toAlert(event)]);
      return await post({ url: String(url), body, headers: {}, credentials }, signal);
    },
  };
}

/** Of the agent or the site, and of the rule. */
const Labels = z.record(z.string(), z.string());

function toAlert({ type, time, severity, ap_id, labels, data }: NetworkEvent) {
  const startsAt = timeOf(data.fired_at) ?? time;
  const endsAt = type === "alert.resolved" ? time : new Date(Date.parse(startsAt) + LONGEST_MS).toISOString();
  const { data: ruleLabels = {} } = Labels.safeParse(data.labels);
  const own = Object.entries({ ...labels, ...ruleLabels }).map(([key, value]) => [labelName(key), value]);
  return {
    // The labels identify an alert, so those of its end must be the same.
    labels: {
      ...Object.fromEntries(own),
      ...(ap_id !== null && { ap_id }),
      alertname: textOf(data.rule) || type,
      severity,
    },
    annotations: { summary: textOf(data.text), value: textOf(data.value) },
    startsAt,
    endsAt,
  };
}

/** Names of labels have letters, digits and underscores only. */
const labelName = (key: string): string => key.replaceAll(/[^A-Za-z0-9_]/g, "_").replace(/^(?=\d)/, "_");

const textOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";

/** Returns a time in the form of ISO 8601. Milliseconds since 1970 are accepted as well. */
function timeOf(value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
