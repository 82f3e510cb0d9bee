import { useEffect } from "preact/hooks";
import type { Agent } from "../../../schemas/agent.ts";
import { ApiError } from "../../api/call.ts";
import { listGroups, readLabels } from "../../api/fleet-calls.ts";
import { readAgent } from "../../api/operations.ts";
import { href, type PageProps } from "../../app/router.ts";
import { may, session } from "../../app/session.ts";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { useLoaded } from "../../lib/load.ts";
import { usePoll } from "../../lib/poll.ts";
import { allows, mayOperate, useOwnGrants } from "../../selectors/own-grants.ts";
import { AgentEvents } from "../events/agent-events.tsx";
import { AgentLabels } from "./agent-labels.tsx";
import { Charts } from "./charts.tsx";
import { Commands } from "./commands.tsx";
import { Configuration } from "./configuration.tsx";
import { useCurrentStatus } from "./current-status.ts";
import { AccessPointHeader } from "./header.tsx";
import { Position } from "./position.tsx";
import "../../style/access-point.css";

const CONFIGURATION_INTERVAL_MS = 30_000;

/** Shows one access point: its status, metrics, events, commands and configuration. */
export function AccessPoint({ route }: PageProps) {
  const apId = route.path[1] ?? "";
  return <AccessPointLoader key={apId} apId={apId} query={route.query} />;
}

function AccessPointLoader({ apId, query }: { apId: string; query: URLSearchParams }) {
  const {
    data: agent,
    error,
    refresh,
  } = usePoll((signal) => readAgent(apId, signal), CONFIGURATION_INTERVAL_MS, [apId]);
  useEffect(() => {
    if (apId !== "") document.title = `${apId} · Network Controller`;
  }, [apId]);

  if (apId === "" || (error instanceof ApiError && error.status === 404)) return <UnknownAccessPoint apId={apId} />;
  if (agent === undefined)
    return error === undefined ? <Loading lines={8} /> : <Failed error={error} onRetry={refresh} />;
  return <AccessPointContent agent={agent} query={query} />;
}

function AccessPointContent({ agent, query }: { agent: Agent; query: URLSearchParams }) {
  const { ap_id: apId, configuration } = agent;
  const status = useCurrentStatus(apId, configuration.interval);
  const type = typeof configuration.access_point_type === "string" ? configuration.access_point_type : null;
  const { labels, mayLabel, mayCommand, refresh } = useLabels(apId);
  return (
    <div class="stack">
      <AccessPointHeader apId={apId} type={type} status={status}>
        {labels !== undefined && <AgentLabels {...{ apId, labels }} mayChange={mayLabel} onChanged={refresh} />}
      </AccessPointHeader>
      <Charts apId={apId} type={type} query={query} />
      <AgentEvents apId={apId} />
      <div class="ap-columns">
        {mayCommand && <Commands apId={apId} supported={configuration.commands} />}
        <div class="stack">
          <Position apId={apId} type={type} geolocation={configuration.geolocation} status={status} />
          <Configuration configuration={configuration} />
          <section class="card" aria-labelledby="history-title">
            <h2 id="history-title">History</h2>
            <p>
              <a href={href(["jobs"], { agent: apId })}>Request its history</a> to download everything that it reported
              in a period.
            </p>
          </section>
        </div>
      </div>
    </div>
  );
}

/** Loads the labels of an access point, and determines what the user may do with it. */
function useLabels(apId: string) {
  const loaded = usePoll(async (signal) => (await readLabels(apId, signal)).labels, CONFIGURATION_INTERVAL_MS, [apId]);
  const labels = loaded.data;
  const grants = useOwnGrants();
  // Grants may name groups.
  const isLimited = grants !== undefined && grants !== null;
  const groups = useLoaded(async (signal) => (isLimited ? await listGroups(signal) : []), [isLimited]).data ?? [];
  const username = session.value?.username ?? "";
  const isKnown = labels !== undefined && grants !== undefined;
  return {
    labels,
    mayLabel: isKnown && may("agents:manage") && (grants === null || allows(grants, "manager", labels, groups)),
    mayCommand: may("commands:send") && isKnown && mayOperate(grants, labels, groups, username),
    refresh: loaded.refresh,
  };
}

function UnknownAccessPoint({ apId }: { apId: string }) {
  return (
    <Empty title={apId === "" ? "No access point selected" : `There is no access point called “${apId}”`}>
      <p>It may have been deleted, or the address may be wrong.</p>
      <p>
        <a href={href([])}>Show all access points</a>
      </p>
    </Empty>
  );
}
