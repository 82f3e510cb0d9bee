import type { ComponentChildren } from "preact";

/** Placeholders for data that are empty, failed or loading. */

/** An empty list: its children say what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

interface FailedProps {
  error: Error | undefined;
  onRetry?: () => void;
  retryText?: string;
}

/** An error message, which screen readers announce at once. */
export function Failed({ error, onRetry, retryText = "Try again" }: FailedProps) {
  if (error === undefined) return null;
  return (
    <div class="failed" role="alert">
      <p>{error.message}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          {retryText}
        </button>
      )}
    </div>
  );
}

/** Says which data are missing while the service cannot read its store. */
export function MissingBefore({ time }: { time: string | undefined }) {
  if (time === undefined) return null;
  return (
    <p class="hint" role="status">
      Data before {time} is missing because the telemetry store does not respond. It appears when the store is back.
    </p>
  );
}

/** Reserves space for data that are loading, so that the layout does not jump. */
export function Loading({ lines = 3 }: { lines?: number }) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} />
      ))}
    </div>
  );
}

/** A progress bar. Without a share it shows that work is in progress. */
export function Progress({ label, share }: { label: string; share: number | undefined }) {
  const value = share === undefined ? undefined : Math.min(1, Math.max(0, share));
  return <progress class="progress" aria-label={label} max={1} {...(value !== undefined && { value })} />;
}
