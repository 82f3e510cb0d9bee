import { useEffect, useId, useState } from "preact/hooks";
import { SelectorInput } from "./selector-input.tsx";

/** Filters a page by labels. Enter applies the selector. */
export function SelectorBar({
  selector,
  error,
  onSelector,
}: {
  selector: string;
  /** The service's error about the selector. */
  error: string | undefined;
  onSelector(selector: string): void;
}) {
  const id = useId();
  const [text, setText] = useState(selector);
  // The site tree and the browser's history change the selector, too.
  useEffect(() => setText(selector), [selector]);
  return (
    <form
      class="selector-bar"
      aria-label="Filter by labels"
      onSubmit={(event) => {
        event.preventDefault();
        onSelector(text.trim());
      }}
    >
      <SelectorInput
        id={id}
        label="Filter by labels"
        placeholder="Filter by labels, for example site=uk/*,technology in (LiFi,WiFi)"
        value={text}
        onValue={setText}
        onCommit={onSelector}
        error={text === selector ? error : undefined}
      />
      <button type="submit">Filter</button>
      {(selector !== "" || text !== "") && (
        <button
          type="button"
          onClick={() => {
            setText("");
            onSelector("");
          }}
        >
          Clear
        </button>
      )}
    </form>
  );
}
