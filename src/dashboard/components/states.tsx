import type { ComponentChildren } from "preact";

/** What is shown where there is nothing else to show. */

/** Nothing there yet, and what to do about it. */
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

/** What went wrong, read out as it appears. */
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

/** Holds the place of what is still to come, so that nothing jumps when it does. */
export function Loading({ lines = 3 }: { lines?: number }) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} />
      ))}
    </div>
  );
}

/** How far something has come; without a share, that it is under way. */
export function Progress({ label, share }: { label: string; share: number | undefined }) {
  const value = share === undefined ? undefined : Math.min(1, Math.max(0, share));
  return <progress class="progress" aria-label={label} max={1} {...(value !== undefined && { value })} />;
}
