import { useRef, useState } from "preact/hooks";

/** A text to be taken elsewhere, with a button that does so. */
export function Copyable({ label, text }: { label: string; text: string }) {
  const [said, setSaid] = useState("");
  const code = useRef<HTMLElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      // Without a secure connection, or without leave, there is no clipboard for pages: the rest is up to the person.
      if (code.current) getSelection()?.selectAllChildren(code.current);
      setSaid("Selected");
    }
    setTimeout(() => setSaid(""), 2_000);
  };
  return (
    <div class="copyable">
      <code ref={code}>{text}</code>
      <button type="button" aria-label={said || `Copy ${label}`} onClick={() => void copy()}>
        {said || "Copy"}
      </button>
    </div>
  );
}
