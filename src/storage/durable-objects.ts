import { Unavailable } from "../lib/errors.ts";

/** Matches the error messages of a full disk and of an internal error of the platform, which a full disk can also cause. */
const PLATFORM_ERROR = /SQLITE_(FULL|IOERR)|^internal error; reference = /;

/**
 * Awaits a call to a Durable Object. Throws `Unavailable` on errors that a retry may resolve: the platform marks the error if the object
 * is overloaded or moves to another machine. Internal errors of the platform are temporary as well. The call may have taken effect, so a
 * retry must be idempotent.
 */
export async function callObject<T>(component: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw isRetryable(error) ? new Unavailable(component, error) : error;
  }
}

const isRetryable = (error: unknown): boolean =>
  error instanceof Error && ("overloaded" in error || "retryable" in error || PLATFORM_ERROR.test(error.message));
