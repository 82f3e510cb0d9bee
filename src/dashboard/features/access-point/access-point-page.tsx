import { useEffect } from "preact/hooks";
import type { Agent } from "../../../schemas/agent.ts";
import { ApiError } from "../../api/call.ts";
import { readAgent } from "../../api/operations.ts";
import { href, type PageProps } from "../../app/router.ts";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { usePoll } from "../../lib/poll.ts";
import { Charts } from "./charts.tsx";
import { Commands } from "./commands.tsx";
import { Configuration } from "./configuration.tsx";
import { Head } from "./head.tsx";
import { Position } from "./position.tsx";
import { useVitals } from "./vitals.ts";
import "../../style/access-point.css";

const CONFIGURATION_EVERY_MS = 30_000;

/** One access point: how it does, what it measures, what it can be told. */
export function AccessPoint({ route }: PageProps) {
  const apId = route.path[1] ?? "";
  return <Named key={apId} apId={apId} query={route.query} />;
}

function Named({ apId, query }: { apId: string; query: URLSearchParams }) {
  const { data: agent, error, refresh } = usePoll((signal) => readAgent(apId, signal), CONFIGURATION_EVERY_MS, [apId]);
  useEffect(() => {
    if (apId !== "") document.title = `${apId} · Network Controller`;
  }, [apId]);

  if (apId === "" || (error instanceof ApiError && error.status === 404)) return <Unknown apId={apId} />;
  if (agent === undefined)
    return error === undefined ? <Loading lines={8} /> : <Failed error={error} onRetry={refresh} />;
  return <Found agent={agent} query={query} />;
}

function Found({ agent, query }: { agent: Agent; query: URLSearchParams }) {
  const { ap_id: apId, configuration } = agent;
  const vitals = useVitals(apId, configuration.interval);
  const type = typeof configuration.access_point_type === "string" ? configuration.access_point_type : null;
  return (
    <div class="stack">
      <Head apId={apId} type={type} vitals={vitals} />
      <Charts apId={apId} type={type} query={query} />
      <div class="ap-columns">
        <Commands apId={apId} known={configuration.commands} />
        <div class="stack">
          <Position apId={apId} type={type} geolocation={configuration.geolocation} vitals={vitals} />
          <Configuration configuration={configuration} />
          <section class="card" aria-labelledby="history-title">
            <h2 id="history-title">History</h2>
            <p>
              All that it has reported over some time, as one download:{" "}
              <a href={href(["jobs"], { agent: apId })}>request its history</a>.
            </p>
          </section>
        </div>
      </div>
    </div>
  );
}

function Unknown({ apId }: { apId: string }) {
  return (
    <Empty title={apId === "" ? "Which access point?" : `There is no access point called “${apId}”.`}>
      <p>It may have been removed, or the address has a slip.</p>
      <p>
        <a href={href([])}>See all access points</a>
      </p>
    </Empty>
  );
}
