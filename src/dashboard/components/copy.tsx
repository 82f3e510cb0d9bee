import { useRef, useState } from "preact/hooks";

/** A text with a button that copies it. */
export function Copyable({ label, text }: { label: string; text: string }) {
  const [feedback, setFeedback] = useState("");
  const code = useRef<HTMLElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setFeedback("Copied");
    } catch {
      // Pages have no clipboard without HTTPS or without permission. Selecting the text lets the user copy it.
      if (code.current) getSelection()?.selectAllChildren(code.current);
      setFeedback("Selected");
    }
    setTimeout(() => setFeedback(""), 2_000);
  };
  return (
    <div class="copyable">
      <code ref={code}>{text}</code>
      <button type="button" aria-label={feedback || `Copy ${label}`} onClick={() => void copy()}>
        {feedback || "Copy"}
      </button>
    </div>
  );
}
