import { useMemo } from "preact/hooks";
import { href } from "../../app/router.ts";
import { countOf, countText } from "../../lib/format.ts";
import { useJob } from "../../lib/job-status.ts";
import type { Made } from "./last-spin-up.ts";
import { EmulatorProgress } from "./progress.tsx";

const SHOWN_NAMES = 10;
const SHOWN_PLACES = 10;

/** What was made of a request, and how it gets on. */
export function JustMade({ made, onClose }: { made: Made; onClose(): void }) {
  const { job_number, agents, ap_ids, locations, durationS } = made;
  const { messages, socket } = useJob(job_number);
  const reports = useMemo(
    () => messages.flatMap((message) => (message.type === "emulator" ? message.data.map((data) => ({ data })) : [])),
    [messages],
  );
  // All of a job have the beginning of its number in their names.
  const others = href([], { text: job_number.slice(0, 8) });
  return (
    <section class="card stack just-made" aria-labelledby="just-made">
      <div class="spread">
        <div role="status">
          <h2 id="just-made">{countOf(agents, "access point")} made</h2>
        </div>
        <button type="button" class="quiet" onClick={onClose}>
          Close
        </button>
      </div>
      {socket.state === "ended" ? (
        <p>{socket.reason}.</p>
      ) : (
        <EmulatorProgress reports={reports} durationS={durationS} />
      )}
      <div>
        <h3>Where</h3>
        <ul class="plain">
          {locations.slice(0, SHOWN_PLACES).map(({ location, place, latitude, longitude }) => (
            <li key={location}>
              {location}
              {place !== undefined && place !== location && ` is ${place}`}{" "}
              <span class="soft">
                {latitude.toFixed(3)}, {longitude.toFixed(3)}
              </span>
            </li>
          ))}
          {locations.length > SHOWN_PLACES && <li>and {countText(locations.length - SHOWN_PLACES)} more</li>}
        </ul>
      </div>
      <div>
        <h3>Access points</h3>
        <ul class="plain names">
          {ap_ids.slice(0, SHOWN_NAMES).map((apId) => (
            <li key={apId}>
              <a href={href(["access-points", apId])}>{apId}</a>
            </li>
          ))}
          {ap_ids.length > SHOWN_NAMES && (
            <li>
              <a href={others}>and {countText(ap_ids.length - SHOWN_NAMES)} more</a>
            </li>
          )}
        </ul>
      </div>
      <p>
        <a href={others}>See them on the map</a> · <a href={href(["jobs", job_number])}>The job</a>
      </p>
    </section>
  );
}
