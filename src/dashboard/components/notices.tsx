import { signal } from "@preact/signals";
import { connection } from "../api/connection.ts";

/** Short messages about finished actions, and a permanent one during an outage of the service. */

interface Notice {
  id: number;
  text: string;
}

const SHOWN_MS = 6_000;
const notices = signal<readonly Notice[]>([]);
let lastId = 0;

/** Shows a message for a few seconds. */
export function notify(text: string): void {
  const notice = { id: ++lastId, text };
  notices.value = [...notices.value, notice];
  setTimeout(() => {
    notices.value = notices.value.filter((other) => other !== notice);
  }, SHOWN_MS);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}

/** Shows an outage at the top of the page until it ends. */
export function ConnectionNotice() {
  const current = connection.value;
  const text =
    current.state === "unreachable"
      ? "No connection to the service. This page reconnects automatically."
      : current.state === "impaired"
        ? `The service cannot reach ${current.down.join(" and ")}. This page continues automatically when it can.`
        : "";
  return (
    <div class="connection" role="alert" data-shown={text !== ""}>
      {text}
    </div>
  );
}
