import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { SpinupQueued } from "../../../schemas/emulator.ts";
import { href } from "../../app/router.ts";
import { session } from "../../app/session.ts";
import { countOf, countText } from "../../lib/format.ts";
import { useJob } from "../../lib/job-status.ts";
import { EmulatorProgress } from "./emulator-progress.tsx";

/** An emulation that was started on this page. */
export interface SpinUp extends SpinupQueued {
  durationS: number;
}

/** The last emulation that was started. Survives a change of page, but not a sign-out. */
export const lastSpinUp = signal<SpinUp | undefined>(undefined);

session.subscribe(() => {
  if (session.value === undefined) lastSpinUp.value = undefined;
});

const MAX_NAMES = 10;
const MAX_PLACES = 10;

/** Shows the created access points and the progress of their emulation. */
export function SpinUpResult({ spinUp, onClose }: { spinUp: SpinUp; onClose(): void }) {
  const { job_number, agents, ap_ids, locations, durationS } = spinUp;
  const { messages, socket } = useJob(job_number);
  const reports = useMemo(
    () => messages.flatMap((message) => (message.type === "emulator" ? message.data.map((data) => ({ data })) : [])),
    [messages],
  );
  // The names of a job's access points contain the start of its number.
  const overviewLink = href([], { text: job_number.slice(0, 8) });
  return (
    <section class="card stack" aria-labelledby="spin-up-result">
      <div class="spread">
        <div role="status">
          <h2 id="spin-up-result">{countOf(agents, "access point")} created</h2>
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
        <h3>Places</h3>
        <ul class="plain">
          {locations.slice(0, MAX_PLACES).map(({ location, place, latitude, longitude }) => (
            <li key={location}>
              {location}
              {place !== undefined && place !== location && ` (${place})`}{" "}
              <span class="soft">
                {latitude.toFixed(3)}, {longitude.toFixed(3)}
              </span>
            </li>
          ))}
          {locations.length > MAX_PLACES && <li>and {countText(locations.length - MAX_PLACES)} more</li>}
        </ul>
      </div>
      <div>
        <h3>Access points</h3>
        <ul class="plain names">
          {ap_ids.slice(0, MAX_NAMES).map((apId) => (
            <li key={apId}>
              <a href={href(["access-points", apId])}>{apId}</a>
            </li>
          ))}
          {ap_ids.length > MAX_NAMES && (
            <li>
              <a href={overviewLink}>and {countText(ap_ids.length - MAX_NAMES)} more</a>
            </li>
          )}
        </ul>
      </div>
      <p>
        <a href={overviewLink}>Show on the map</a> · <a href={href(["jobs", job_number])}>Show job</a>
      </p>
    </section>
  );
}
