import { connection } from "../api/connection.ts";
import { observable, useObserved } from "../lib/observable.ts";

/** Short messages that come and go, and the lasting one that the service is away. */

interface Notice {
  id: number;
  text: string;
}

const SHOWN_MS = 6_000;
const notices = observable<readonly Notice[]>([]);
let lastId = 0;

/** Tells that something was done. */
export function notify(text: string): void {
  const notice = { id: ++lastId, text };
  notices.set([...notices.get(), notice]);
  setTimeout(() => notices.set(notices.get().filter((other) => other !== notice)), SHOWN_MS);
}

export function Notices() {
  const shown = useObserved(notices);
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}

/** Over everything else, as long as it lasts. */
export function ConnectionNotice() {
  const state = useObserved(connection);
  const text =
    state.state === "away"
      ? "No connection to the service. This page tries again by itself."
      : state.state === "impaired"
        ? `The service cannot reach ${state.down.join(" and ")}. This page goes on as soon as it can.`
        : "";
  return (
    <div class="connection" role="alert" data-shown={text !== ""}>
      {text}
    </div>
  );
}
