import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useAction } from "../lib/action.ts";
import { TextField } from "./form.tsx";
import { Failed } from "./states.tsx";

/** A modal dialog. The browser's element keeps the focus inside, and Escape closes it. Without `onClose` it stays open. */
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
      // The browser restores the focus only if the dialog closes while it is in the document. Here it is already removed.
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
      // If Escape is pressed repeatedly, the browser closes the dialog although `cancel` was prevented.
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

/** Asks for confirmation of an action that cannot be undone. */
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
  /** The text of the button: the action's verb, not "OK". */
  label: string;
  /** A text that the user has to type first, for actions with large effects. */
  typed?: string;
  onConfirm(): Promise<void>;
  onClose(): void;
}) {
  const [input, setInput] = useState("");
  const action = useAction(async () => {
    await onConfirm();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <div>{children}</div>
      {typed !== undefined && (
        <TextField label={`Type ${typed} to confirm`} autocomplete="off" value={input} onValue={setInput} />
      )}
      <Failed error={action.error} />
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          class="danger"
          disabled={action.isBusy || (typed !== undefined && input.trim() !== typed)}
          onClick={() => void action.run()}
        >
          {label}
        </button>
      </footer>
    </Dialog>
  );
}
