import type * as z from "zod";
import type { Alert, AlertsQuery, Silence, SilenceCreate } from "../../schemas/alerts/alert.ts";
import type { Backtest, BacktestRequest } from "../../schemas/alerts/backtest.ts";
import type { RuleSpec } from "../../schemas/alerts/rule.ts";
import type { AlertRule, AlertRuleSave } from "../../schemas/alerts/saved-rule.ts";
import type { EventPage, EventType } from "../../schemas/events.ts";
import type { Ack } from "../../schemas/primitives.ts";
import { call, pathTo, V1 } from "./call.ts";

/** The API operations on events, alerts, silences and alert rules. */

export interface EventsRequest {
  after?: number | undefined;
  types?: readonly EventType[];
  /** The name of an access point. */
  agent?: string;
  newest?: boolean;
  limit?: number;
  waitS?: number;
}
export const listEvents = (
  { after, types, agent, newest, limit, waitS }: EventsRequest,
  signal?: AbortSignal,
): Promise<EventPage> =>
  call("GET", `${V1}/events`, {
    query: { after, types: types?.join(), agent, newest: newest ? "true" : undefined, limit, wait: waitS },
    signal,
  });

export interface AlertsRequest {
  selector?: string;
  state?: AlertsQuery["state"];
  /** The id of an alert: returns those that fired before it. */
  before?: string | undefined;
  limit: number;
}
export const listAlerts = (request: AlertsRequest, signal?: AbortSignal): Promise<Alert[]> =>
  call("GET", `${V1}/alerts`, { query: { ...request, selector: request.selector || undefined }, signal });
export const acknowledgeAlert = (id: string): Promise<Alert> => call("POST", pathTo("alerts", id, "acknowledge"));

export const listSilences = (signal?: AbortSignal): Promise<Silence[]> =>
  call("GET", `${V1}/alerts/silences`, { signal });
export const createSilence = (body: SilenceCreate): Promise<Silence> => call("POST", `${V1}/alerts/silences`, { body });
export const endSilence = (id: string): Promise<Ack> => call("DELETE", pathTo("alerts", "silences", id));

export type NewRuleSpec = z.input<typeof RuleSpec>;
export type NewRule = z.input<typeof AlertRuleSave>;

export const listRules = (signal?: AbortSignal): Promise<AlertRule[]> => call("GET", `${V1}/alerts/rules`, { signal });
export const readRule = (id: string, signal?: AbortSignal): Promise<AlertRule> =>
  call("GET", pathTo("alerts", "rules", id), { signal });
export const createRule = (body: NewRule): Promise<AlertRule> => call("POST", `${V1}/alerts/rules`, { body });
export const replaceRule = (id: string, body: NewRule): Promise<AlertRule> =>
  call("PUT", pathTo("alerts", "rules", id), { body });
export const deleteRule = (id: string): Promise<Ack> => call("DELETE", pathTo("alerts", "rules", id));

/** Evaluates a rule over a past period. */
export const testRule = (body: z.input<typeof BacktestRequest>, signal?: AbortSignal): Promise<Backtest> =>
  call("POST", `${V1}/alerts/rules/test`, { body, signal });
