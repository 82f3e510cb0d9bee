import type { NetworkEvent } from "../../../schemas/events.ts";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { Ago } from "../../components/time.tsx";
import { eventDetail, eventText } from "./event-text.ts";
import { SeverityMark } from "./severity.tsx";
import { useEvents } from "./use-events.ts";
import "../../style/alerts.css";

/** The last events of an access point, live. */
export function AgentEvents({ apId }: { apId: string }) {
  const { events, error } = useEvents(apId);
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      {events === undefined ? (
        error === undefined ? (
          <Loading />
        ) : (
          <Failed error={error} />
        )
      ) : events.length === 0 ? (
        <Empty title="No events yet" />
      ) : (
        <ol class="events">
          {events.map((event) => (
            <EventRow key={event.id} event={event} />
          ))}
        </ol>
      )}
    </section>
  );
}

function EventRow({ event }: { event: NetworkEvent }) {
  const { time, type, severity, actor } = event;
  const detail = eventDetail(event);
  return (
    <li>
      <span class="soft">
        <Ago ts={time} />
      </span>
      <span>
        <SeverityMark severity={severity}>{eventText(type)}</SeverityMark>
        {detail !== "" && <span class="event-detail"> {detail}</span>}
        {actor !== null && <span class="soft"> by {actor.replace(/^[a-z_]+:/, "")}</span>}
      </span>
    </li>
  );
}
