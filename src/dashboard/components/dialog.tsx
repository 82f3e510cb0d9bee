import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useAction } from "../lib/action.ts";
import { TextField } from "./form.tsx";
import { Failed } from "./states.tsx";

/** The browser's own dialog: it keeps the focus inside, and Escape closes it. Without `onClose` it cannot be closed. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose?: (() => void) | undefined;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      // It is out of the document by now, and the browser gives the focus back only where it closes one that is in it.
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      // Pressed often enough, Escape closes it whatever we say.
      onClose={() => (onClose === undefined ? dialog.current?.showModal() : onClose())}
    >
      <header>
        <h2 id={id}>{title}</h2>
        {onClose && (
          <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}

/** Asks before something is done that cannot be undone. */
export function Confirm({
  title,
  children,
  label,
  typed,
  onConfirm,
  onClose,
}: {
  title: string;
  children: ComponentChildren;
  /** What the button says: the deed, not "OK". */
  label: string;
  /** What has to be typed first, where a slip of the finger would be too dear. */
  typed?: string;
  onConfirm(): Promise<void>;
  onClose(): void;
}) {
  const [typing, setTyping] = useState("");
  const action = useAction(async () => {
    await onConfirm();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <div>{children}</div>
      {typed !== undefined && (
        <TextField label={`Type ${typed} to go on`} autocomplete="off" value={typing} onValue={setTyping} />
      )}
      <Failed error={action.error} />
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          class="danger"
          disabled={action.isBusy || (typed !== undefined && typing.trim() !== typed)}
          onClick={() => void action.run()}
        >
          {label}
        </button>
      </footer>
    </Dialog>
  );
}
