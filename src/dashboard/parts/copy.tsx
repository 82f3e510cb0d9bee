import { useState } from "preact/hooks";

/** A text to be taken elsewhere, with a button that does so. */
export function Copyable({ label, text }: { label: string; text: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), 2_000);
  };
  return (
    <div class="copyable">
      <code>{text}</code>
      <button type="button" aria-label={isCopied ? `Copied` : `Copy ${label}`} onClick={() => void copy()}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
