import { useState } from "preact/hooks";
import { notify } from "../../components/notices.tsx";
import { countOf, sizeText } from "../../lib/format.ts";
import { KEPT_RAW_MESSAGES, prettyText, type RawMessage } from "./raw-messages.ts";

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** For developers: the messages as they came. */
export function Console({ messages }: { messages: readonly RawMessage[] }) {
  const [isOpen, setIsOpen] = useState(false);
  const [paused, setPaused] = useState<readonly RawMessage[]>();
  const [clearedUpTo, setClearedUpTo] = useState(0);
  const shown = (paused ?? messages).filter(({ seq }) => seq > clearedUpTo);
  const lastSeq = messages.at(-1)?.seq ?? 0;
  const waiting = paused === undefined ? 0 : messages.filter(({ seq }) => seq > (paused.at(-1)?.seq ?? 0)).length;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(shown.map(({ text }) => text).join("\n"));
      notify(`${countOf(shown.length, "message")} copied.`);
    } catch {
      notify("The browser does not let this page copy: it wants a secure connection, or your leave.");
    }
  };
  return (
    <details class="card console" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>
        <h2>Messages as they come</h2>
        <span class="soft">JSON, for developers; the last {KEPT_RAW_MESSAGES}</span>
      </summary>
      {isOpen && (
        <>
          <div class="row">
            <button
              type="button"
              aria-pressed={paused !== undefined}
              onClick={() => setPaused(paused === undefined ? messages : undefined)}
            >
              {paused === undefined ? "Pause" : `Go on (${waiting} new)`}
            </button>
            <button
              type="button"
              onClick={() => {
                setPaused(undefined);
                setClearedUpTo(lastSeq);
              }}
            >
              Clear
            </button>
            <button type="button" disabled={shown.length === 0} onClick={() => void copy()}>
              Copy
            </button>
          </div>
          {shown.length === 0 ? (
            <p class="soft">No messages since.</p>
          ) : (
            <ol class="messages">
              {shown.toReversed().map((message) => (
                <Message key={message.seq} message={message} />
              ))}
            </ol>
          )}
        </>
      )}
    </details>
  );
}

/** Its text is made when somebody opens it. */
function Message({ message }: { message: RawMessage }) {
  const { seq, type, ts, length, leftOut } = message;
  const [isOpen, setIsOpen] = useState(false);
  return (
    <li>
      <details onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
        <summary>
          <span>{seq}</span> <strong>{type}</strong> <time dateTime={ts}>{clock.format(new Date(ts))}</time>{" "}
          <span>{sizeText(length)}</span>
        </summary>
        {isOpen && (
          <>
            <pre>{prettyText(message)}</pre>
            {leftOut > 0 && <p class="soft">and {countOf(leftOut, "more item")}, which the rows above are made of.</p>}
          </>
        )}
      </details>
    </li>
  );
}
