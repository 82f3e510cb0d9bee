import { useState } from "preact/hooks";
import { notify } from "../../components/notices.tsx";
import { countOf, sizeText } from "../../lib/format.ts";
import { KEPT_RAW_MESSAGES, prettyText, type RawMessage } from "./raw-messages.ts";

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** Shows the latest messages as JSON, for developers. */
export function Console({ messages }: { messages: readonly RawMessage[] }) {
  const [isOpen, setIsOpen] = useState(false);
  const [paused, setPaused] = useState<readonly RawMessage[]>();
  const [clearedUpTo, setClearedUpTo] = useState(0);
  const shown = (paused ?? messages).filter(({ seq }) => seq > clearedUpTo);
  const lastSeq = messages.at(-1)?.seq ?? 0;
  const newCount = paused === undefined ? 0 : messages.filter(({ seq }) => seq > (paused.at(-1)?.seq ?? 0)).length;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(shown.map(({ text }) => text).join("\n"));
      notify(`${countOf(shown.length, "message")} copied.`);
    } catch {
      notify("The browser did not allow copying. Open the page over HTTPS, or allow access to the clipboard.");
    }
  };
  return (
    <details class="card console" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>
        <h2>Raw messages</h2>
        <span class="soft">JSON, for developers: the last {KEPT_RAW_MESSAGES}</span>
      </summary>
      {isOpen && (
        <>
          <div class="row">
            <button
              type="button"
              aria-pressed={paused !== undefined}
              onClick={() => setPaused(paused === undefined ? messages : undefined)}
            >
              {paused === undefined ? "Pause" : `Resume (${newCount} new)`}
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
            <p class="soft">{clearedUpTo === 0 ? "No messages yet." : "No messages since you cleared the list."}</p>
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

/** Formats the text only when the message is open. */
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
            {leftOut > 0 && (
              <p class="soft">{countOf(leftOut, "more item")} not shown. Download the rows to see all of them.</p>
            )}
          </>
        )}
      </details>
    </li>
  );
}
