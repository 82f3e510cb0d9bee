import { useEffect, useRef, useState } from "preact/hooks";
import type { Alert, Silence } from "../../../schemas/alerts/alert.ts";
import type { AlertRule } from "../../../schemas/alerts/saved-rule.ts";
import { listAlerts, listRules, listSilences } from "../../api/alert-calls.ts";
import { ApiError } from "../../api/call.ts";
import { alertChanges } from "../../app/alert-bell.tsx";
import { fieldErrorOf } from "../../components/form.tsx";
import { useAction } from "../../lib/action.ts";
import { useLoaded } from "../../lib/load.ts";
import { usePoll } from "../../lib/poll.ts";

/** Alerts that one request returns. */
export const MAX_ALERTS = 1_000;
const PAGE_SIZE = 50;
const INTERVAL_MS = 30_000;

export interface CurrentAlerts {
  alerts: readonly Alert[];
  silences: readonly Silence[];
  /** By their ids. They explain the charts. */
  rules: ReadonlyMap<string, AlertRule>;
}

const isRejected = (error: Error | undefined): boolean => error instanceof ApiError && error.status === 422;
const selectorErrorIn = (error: Error | undefined): string | undefined =>
  isRejected(error) ? (fieldErrorOf(error, "selector") ?? error?.message) : undefined;

/** Returns the alerts that fire. Loads them again when the bell sees a change. */
export function useCurrentAlerts(selector: string) {
  const last = useRef<CurrentAlerts>(undefined);
  const { data, error, refresh } = usePoll(
    async (signal): Promise<CurrentAlerts> => {
      const [alerts, silences, rules] = await Promise.all([
        listAlerts({ state: "firing", selector, limit: MAX_ALERTS }, signal),
        listSilences(signal),
        listRules(signal),
      ]);
      return { alerts, silences, rules: new Map(rules.map((rule) => [rule.id, rule])) };
    },
    INTERVAL_MS,
    [selector],
  );
  const changes = alertChanges.value;
  const seen = useRef(changes);
  useEffect(() => {
    if (seen.current !== changes) refresh();
    seen.current = changes;
  }, [changes]);
  // A new filter keeps the alerts of the previous one until the first response.
  if (data !== undefined) last.current = data;
  const selectorError = selectorErrorIn(error);
  return { current: last.current, selectorError, error: selectorError === undefined ? error : undefined, refresh };
}

/** Loads the alerts that have ended page by page, those that fired last first. */
export function useAlertHistory(selector: string) {
  const newest = useLoaded(
    (signal) => listAlerts({ state: "resolved", selector, limit: PAGE_SIZE }, signal),
    [selector],
  );
  const [extended, setExtended] = useState<{ first: unknown; alerts: readonly Alert[]; hasOlder: boolean }>();
  const { alerts, hasOlder } =
    extended !== undefined && extended.first === newest.data
      ? extended
      : { alerts: newest.data ?? [], hasOlder: newest.data?.length === PAGE_SIZE };
  const older = useAction(async () => {
    const page = await listAlerts({ state: "resolved", selector, before: alerts.at(-1)?.id, limit: PAGE_SIZE });
    setExtended({ first: newest.data, alerts: [...alerts, ...page], hasOlder: page.length === PAGE_SIZE });
  });
  return { newest, alerts, older, hasOlder, selectorError: selectorErrorIn(newest.error) };
}
