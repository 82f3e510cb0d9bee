import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useAction } from "../live/action.ts";
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
    dialog.current?.showModal();
    return () => dialog.current?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
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
  onConfirm,
  onClose,
}: {
  title: string;
  children: ComponentChildren;
  /** What the button says: the deed, not "OK". */
  label: string;
  onConfirm(): Promise<void>;
  onClose(): void;
}) {
  const action = useAction(async () => {
    await onConfirm();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <div>{children}</div>
      <Failed error={action.error} />
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={action.isBusy} onClick={() => void action.run()}>
          {label}
        </button>
      </footer>
    </Dialog>
  );
}
